"""Google's Python client against the embedded Pub/Sub. Argument: host:port of the emulator.

The emulator runs with a floor of one second for acknowledgement deadlines, so that expiry costs seconds; everything
else is as the service has it.
"""

import threading

from google.api_core import exceptions, retry
from google.cloud import pubsub_v1
from google.cloud.pubsub_v1.subscriber import exceptions as acknowledging
from google.protobuf import field_mask_pb2, timestamp_pb2

from cases import case, eventually, finish, raises, same
from pubsub_calls import (
    ONCE,
    PROJECT,
    Stream,
    acknowledge,
    deadline,
    only,
    publish,
    publisher,
    pull,
    setup,
    subscriber,
    subscription,
    topic,
)


def publish_pull_ack():
    setup("basic", ack_deadline_seconds=1)
    identity = publish("basic", b"x\x00\xff", kind="sms", text="ä")
    received = only("basic")
    same("id", received.message.message_id, identity)
    same("data", received.message.data, b"x\x00\xff")
    same("attributes", dict(received.message.attributes), {"kind": "sms", "text": "ä"})
    assert received.message.publish_time.timestamp() > 0, "no publish time"
    same("attempt without a dead-letter policy", received.delivery_attempt, 0)
    acknowledge("basic", received)
    same("after the acknowledgement and its deadline", pull("basic", wait=2.5), [])


def leased_once():
    setup("leased")
    publish("leased", b"x")
    only("leased")
    same("deliveries while the first is outstanding", pull("leased", wait=1.5), [])


def nack():
    setup("nack")
    publish("nack", b"x")
    first = only("nack")
    deadline("nack", first, 0)
    second = only("nack")
    same("data", second.message.data, b"x")
    same("id", second.message.message_id, first.message.message_id)
    assert second.ack_id != first.ack_id, "a new delivery has the old acknowledgement id"


def expiry():
    setup("expiry", ack_deadline_seconds=1)
    publish("expiry", b"x")
    first = only("expiry")
    second = only("expiry")
    same("id", second.message.message_id, first.message.message_id)
    acknowledge("expiry", second)
    same("after the acknowledgement", pull("expiry", wait=2.5), [])


def extension():
    setup("extension", ack_deadline_seconds=1)
    publish("extension", b"x")
    first = only("extension")
    deadline("extension", first, 30)
    same("deliveries beyond the first deadline", pull("extension", wait=3.0), [])
    acknowledge("extension", first)


def streaming():
    setup("stream")
    lock, running, peak = threading.Lock(), [0], [0]
    together = threading.Event()

    def act(message, number):
        with lock:
            running[0] += 1
            peak[0] = max(peak[0], running[0])
            if running[0] == 4:
                together.set()
        # Held until as many as the limit allows are here, so that a broken limit would show.
        together.wait(10)
        with lock:
            running[0] -= 1
        message.ack()

    limit = pubsub_v1.types.FlowControl(max_messages=4)
    futures = [publisher.publish(topic("stream"), str(n).encode()) for n in range(60)]
    identities = {future.result(10) for future in futures}
    same("distinct ids", len(identities), 60)
    with Stream("stream", act, flow_control=limit) as stream:
        got = stream.wait(60)
        same("ids", {message.message_id for message in got}, identities)
    same("most at a time", peak[0], 4)
    same("left", pull("stream", wait=1.5), [])


def streaming_nack():
    setup("stream-nack")
    identity = publish("stream-nack", b"x")
    with Stream("stream-nack", lambda message, n: message.nack() if n < 3 else message.ack()) as stream:
        same("ids", {message.message_id for message in stream.wait(3)}, {identity})


def streaming_holds():
    """A callback that takes longer than the deadline gets no second delivery: the client extends the lease."""
    setup("stream-holds")
    publish("stream-holds", b"x")
    release = threading.Event()

    def act(message, _):
        release.wait(20)
        message.ack()

    with Stream("stream-holds", act) as stream:
        stream.wait(1)
        # Another reader for longer than the ten seconds of the subscription's deadline.
        same("deliveries to another reader", pull("stream-holds", wait=12), [])
        release.set()
    same("deliveries", len(stream.deliveries), 1)


def ordering():
    setup("order", enable_message_ordering=True)
    for n in range(20):
        for key in ("a", "b", "c"):
            publisher.publish(topic("order"), str(n).encode(), ordering_key=key).result(10)
    got = {"a": [], "b": [], "c": []}

    def rest():
        received = pull("order", most=7, wait=2)
        for one in received:
            got[one.message.ordering_key].append(int(one.message.data))
        if received:
            acknowledge("order", *received)
        return sum(map(len, got.values())) >= 60

    eventually("all of them", rest)
    same("order", got, {key: list(range(20)) for key in got})


def ordering_streamed():
    """After a nack the key comes again from the nacked message on, in order; the other key is not touched."""
    setup("order-nack", enable_message_ordering=True)
    for n in range(10):
        for key in ("a", "b"):
            publisher.publish(topic("order-nack"), str(n).encode(), ordering_key=key).result(10)
    nacked, acked, lock = [], {"a": [], "b": []}, threading.Lock()

    def act(message, _):
        number, key = int(message.data), message.ordering_key
        with lock:
            if key == "a" and number == 3 and not nacked:
                nacked.append(number)
                message.nack()
                return
            acked[key].append(number)
        message.ack()

    def from_the_nacked_one():
        return acked["a"][acked["a"].index(3) :] if 3 in acked["a"] else []

    with Stream("order-nack", act):
        # What the client already held behind the nacked one may be seen before it comes again; then all of it follows.
        eventually("both keys", lambda: 9 in from_the_nacked_one() and 9 in acked["b"])
    same("b", acked["b"], list(range(10)))
    same("a, before the nacked one", acked["a"][:3], [0, 1, 2])
    same("a, from the nacked one on", from_the_nacked_one(), list(range(3, 10)))


def dead_letter():
    publisher.create_topic(name=topic("dead"), **ONCE)
    request = {"name": subscription("dead"), "topic": topic("dead"), "ack_deadline_seconds": 10}
    subscriber.create_subscription(request=request, **ONCE)
    policy = {"dead_letter_topic": topic("dead"), "max_delivery_attempts": 5}
    made = setup("poisoned", dead_letter_policy=policy)
    same("policy", made.dead_letter_policy.max_delivery_attempts, 5)
    identity = publish("poisoned", b"poison", kind="sms")
    attempts = []
    for _ in range(5):
        received = only("poisoned")
        attempts.append(received.delivery_attempt)
        deadline("poisoned", received, 0)
    same("attempts", attempts, [1, 2, 3, 4, 5])
    dead = only("dead")
    same("data", dead.message.data, b"poison")
    same("left", pull("poisoned", wait=1.5), [])
    attributes = dict(dead.message.attributes)
    prefix = "CloudPubSubDeadLetterSource"
    same("own attribute", attributes.pop("kind"), "sms")
    same("count", attributes.pop(f"{prefix}DeliveryCount"), "5")
    same("subscription", attributes.pop(f"{prefix}Subscription"), "poisoned")
    same("project", attributes.pop(f"{prefix}SubscriptionProject"), PROJECT)
    assert attributes.pop(f"{prefix}TopicPublishTime"), "no publish time of the source"
    same("other attributes", attributes, {})
    assert dead.message.message_id != identity, "a dead letter is a message of its own"


def filters():
    setup("filtered", filter='attributes.kind = "sms" AND NOT hasPrefix(attributes.to, "+1")')
    wanted = publish("filtered", b"1", kind="sms", to="+49")
    for kind, to in (("email", "+49"), ("sms", "+1555")):
        publish("filtered", b"2", kind=kind, to=to)
    publish("filtered", b"3")
    received = only("filtered")
    same("id", received.message.message_id, wanted)
    acknowledge("filtered", received)
    same("rest", pull("filtered", wait=1.5), [])
    publisher.create_topic(name=topic("unfiltered"), **ONCE)
    request = {"name": subscription("unfiltered"), "topic": topic("unfiltered"), "filter": "kind = sms"}
    raises(exceptions.InvalidArgument, lambda: subscriber.create_subscription(request=request, **ONCE))


def exactly_once_ack():
    made = setup("once", enable_exactly_once_delivery=True)
    assert made.enable_exactly_once_delivery, "the setting is gone"
    publish("once", b"x")
    answers, done = [], threading.Event()

    def act(message, number):
        future = message.nack_with_response() if number == 1 else message.ack_with_response()
        answers.append(future.result(10))
        if number == 2:
            done.set()

    with Stream("once", act):
        assert done.wait(20), "no second delivery after the nack"
    success = acknowledging.AcknowledgeStatus.SUCCESS
    same("answers", answers, [success, success])


def exactly_once_stale():
    setup("stale", enable_exactly_once_delivery=True, ack_deadline_seconds=1)
    publish("stale", b"x")
    first = only("stale")
    second = only("stale")
    assert second.ack_id != first.ack_id, "the same acknowledgement id"
    error = raises(exceptions.GoogleAPICallError, lambda: acknowledge("stale", first))
    same("code", error.code, exceptions.FailedPrecondition.code)
    infos = [detail for detail in error.details if hasattr(detail, "metadata")]
    reasons = {key: value for info in infos for key, value in info.metadata.items()}
    same("reason", reasons, {first.ack_id: "PERMANENT_FAILURE_INVALID_ACK_ID"})


def seeks():
    setup("seek", retain_acked_messages=True)
    identity = publish("seek", b"x")
    first = only("seek")
    acknowledge("seek", first)
    same("acknowledged", pull("seek", wait=1.5), [])
    past = timestamp_pb2.Timestamp(seconds=int(first.message.publish_time.timestamp()) - 60)
    subscriber.seek(request={"subscription": subscription("seek"), "time": past}, **ONCE)
    same("replayed", only("seek").message.message_id, identity)
    future = timestamp_pb2.Timestamp(seconds=int(first.message.publish_time.timestamp()) + 3600)
    subscriber.seek(request={"subscription": subscription("seek"), "time": future}, **ONCE)
    same("skipped", pull("seek", wait=1.5), [])


def snapshots():
    setup("snapped")
    first = publish("snapped", b"x")
    name = f"projects/{PROJECT}/snapshots/one"
    subscriber.create_snapshot(request={"name": name, "subscription": subscription("snapped")}, **ONCE)
    acknowledge("snapped", only("snapped"))
    subscriber.seek(request={"subscription": subscription("snapped"), "snapshot": name}, **ONCE)
    same("replayed", only("snapped").message.message_id, first)


def administration():
    for n in range(5):
        publisher.create_topic(request={"name": f"projects/listed/topics/topic-{n}", "labels": {"n": str(n)}}, **ONCE)
    pages = publisher.list_topics(request={"project": "projects/listed", "page_size": 2}, **ONCE).pages
    names = [[one.name.rsplit("/", 1)[1] for one in page.topics] for page in pages]
    same("pages", names, [["topic-0", "topic-1"], ["topic-2", "topic-3"], ["topic-4"]])
    raises(exceptions.AlreadyExists, lambda: publisher.create_topic(name="projects/listed/topics/topic-0", **ONCE))
    got = publisher.get_topic(topic="projects/listed/topics/topic-3", **ONCE)
    same("labels", dict(got.labels), {"n": "3"})
    setup("changed")
    mask = field_mask_pb2.FieldMask(paths=["ack_deadline_seconds"])
    change = {"name": subscription("changed"), "ack_deadline_seconds": 30}
    subscriber.update_subscription(subscription=change, update_mask=mask, **ONCE)
    found = subscriber.get_subscription(subscription=subscription("changed"), **ONCE)
    same("changed", (found.ack_deadline_seconds, found.topic), (30, topic("changed")))
    names = list(publisher.list_topic_subscriptions(topic=topic("changed"), **ONCE))
    same("of the topic", names, [subscription("changed")])
    publisher.delete_topic(topic=topic("changed"), **ONCE)
    found = subscriber.get_subscription(subscription=subscription("changed"), **ONCE)
    same("topic", found.topic, "_deleted-topic_")
    subscriber.delete_subscription(subscription=subscription("changed"), **ONCE)
    raises(exceptions.NotFound, lambda: subscriber.get_subscription(subscription=subscription("changed"), **ONCE))


def refusals():
    never = retry.Retry(predicate=lambda _: False)
    missing = lambda: publisher.publish(topic("missing"), b"x", retry=never).result(10)  # noqa: E731
    raises(exceptions.NotFound, missing)
    raises(exceptions.NotFound, lambda: subscriber.pull(subscription=subscription("missing"), max_messages=1, **ONCE))
    setup("refusing")
    empty = {"topic": topic("refusing"), "messages": [{"data": b""}]}
    raises(exceptions.InvalidArgument, lambda: publisher.api.publish(request=empty, **ONCE))
    long = {"topic": topic("refusing"), "messages": [{"data": b"x", "attributes": {"k": "v" * 1025}}]}
    raises(exceptions.InvalidArgument, lambda: publisher.api.publish(request=long, **ONCE))


case("publish, pull, acknowledge", publish_pull_ack)
case("an outstanding delivery is not delivered again", leased_once)
case("nack: redelivered at once under a new acknowledgement id", nack)
case("deadline runs out: redelivered", expiry)
case("deadline extended: held", extension)
case("streaming pull with flow control", streaming)
case("streaming nack: redelivered until acknowledged", streaming_nack)
case("streaming pull holds a slow callback's lease", streaming_holds)
case("order per key by pull", ordering)
case("order per key by streaming pull after a nack", ordering_streamed)
case("dead letter after five attempts, with its attributes", dead_letter)
case("filter", filters)
case("exactly-once: acknowledgements are answered", exactly_once_ack)
case("exactly-once: a stale acknowledgement is refused", exactly_once_stale)
case("seek to a time", seeks)
case("seek to a snapshot", snapshots)
case("administration: create, page, update, delete", administration)
case("refusals: missing, empty, too long", refusals)
finish()
