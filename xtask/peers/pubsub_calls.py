"""Google's Python client at the address of the first argument, and the few calls that cases are made of."""

import os
import sys
import threading

os.environ["PUBSUB_EMULATOR_HOST"] = sys.argv[1]

from google.api_core import exceptions  # noqa: E402
from google.cloud import pubsub_v1  # noqa: E402

from cases import eventually, same  # noqa: E402

PROJECT = "peers"
publisher = pubsub_v1.PublisherClient(publisher_options=pubsub_v1.types.PublisherOptions(enable_message_ordering=True))
subscriber = pubsub_v1.SubscriberClient()
#: The client repeats failed calls for minutes by itself; a check wants the first answer.
ONCE = {"retry": None, "timeout": 10.0}


def topic(name):
    return f"projects/{PROJECT}/topics/{name}"


def subscription(name):
    return f"projects/{PROJECT}/subscriptions/{name}"


def setup(name, **settings):
    publisher.create_topic(name=topic(name), **ONCE)
    request = {"name": subscription(name), "topic": topic(name), "ack_deadline_seconds": 10, **settings}
    return subscriber.create_subscription(request=request, **ONCE)


def publish(name, data, **attributes):
    return publisher.publish(topic(name), data, **attributes).result(10)


def pull(name, most=100, wait=5.0):
    """Deliveries of one pull; none when nothing came for `wait` seconds."""
    try:
        answer = subscriber.pull(subscription=subscription(name), max_messages=most, retry=None, timeout=wait)
    except exceptions.DeadlineExceeded:
        return []
    return list(answer.received_messages)


def only(name, wait=5.0):
    received = eventually("a delivery", lambda: pull(name, wait=wait), limit=15)
    same("deliveries", len(received), 1)
    return received[0]


def acknowledge(name, *received):
    ids = [one.ack_id for one in received]
    subscriber.acknowledge(subscription=subscription(name), ack_ids=ids, **ONCE)


def deadline(name, received, seconds):
    subscriber.modify_ack_deadline(
        subscription=subscription(name), ack_ids=[received.ack_id], ack_deadline_seconds=seconds, **ONCE
    )


class Stream:
    """A streaming pull that keeps what it got until `count` deliveries are there."""

    def __init__(self, name, act, **options):
        self.deliveries = []
        self.lock = threading.Condition()
        self.act = act
        self.future = subscriber.subscribe(subscription(name), callback=self.receive, **options)

    def receive(self, message):
        with self.lock:
            self.deliveries.append(message)
            number = len(self.deliveries)
            self.lock.notify_all()
        self.act(message, number)

    def wait(self, count, limit=20):
        with self.lock:
            there = self.lock.wait_for(lambda: len(self.deliveries) >= count, limit)
        assert there, f"{len(self.deliveries)} of {count} deliveries after {limit} s"
        return self.deliveries

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.future.cancel()
        self.future.result(10)
