"""Passes every request on and writes it down. Arguments: host:port of the upstream, file for one JSON object a line.

A request with the header `x-peers-spoil`, a JSON object, gets an answer with these fields in it instead of its own.
"""

import http.client
import http.server
import json
import sys
import threading

UPSTREAM, RECORD = sys.argv[1], sys.argv[2]
#: About one connection; everything else is passed on.
HOP = {"connection", "keep-alive", "transfer-encoding", "host", "content-length", "date", "server"}
lock = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def relay(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        upstream = http.client.HTTPConnection(UPSTREAM, timeout=30)
        passed = {name: value for name, value in self.headers.items() if name.lower() not in HOP}
        try:
            upstream.request(self.command, self.path, body or None, passed)
            answer = upstream.getresponse()
            reply = answer.read()
        except (OSError, http.client.HTTPException):
            # The upstream closed the connection on purpose; so do we.
            self.write_down(body, None, b"null")
            self.close_connection = True
            return
        spoil = self.headers.get("x-peers-spoil")
        if spoil:
            reply = json.dumps({**json.loads(reply), **json.loads(spoil)}).encode()
        self.write_down(body, answer.status, reply)
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in HOP:
                self.send_header(name, value)
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)
        upstream.close()

    do_GET = do_POST = do_DELETE = relay

    def write_down(self, body, status, reply):
        path, _, query = self.path.partition("?")
        # Names of headers alone: one of them holds the credential.
        line = {
            "method": self.command.lower(),
            "path": path,
            "query": query,
            "body": body.decode(),
            "headers": sorted(name.lower() for name in self.headers),
            "content_type": self.headers.get("content-type"),
            "version": self.headers.get("stripe-version"),
            "key": self.headers.get("idempotency-key"),
            "status": status,
            "reply": json.loads(reply or b"null"),
        }
        with lock, open(RECORD, "a", encoding="utf-8") as record:
            record.write(json.dumps(line) + "\n")

    def log_message(self, *_):
        pass


open(RECORD, "w", encoding="utf-8").close()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"listening on 127.0.0.1:{server.server_address[1]}", flush=True)
server.serve_forever()
