"""Sends HTTP/2 connections to one address and all others to another. Arguments: host:port of each.

An HTTP/2 connection begins with a preface that no HTTP/1.1 request can begin with.
"""

import asyncio
import sys

HTTP2, HTTP1 = sys.argv[1].rsplit(":", 1), sys.argv[2].rsplit(":", 1)
PREFACE = b"PRI "


async def copy(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def split(reader, writer):
    try:
        first = await reader.readexactly(len(PREFACE))
    except asyncio.IncompleteReadError:
        writer.close()
        return
    upstream = await asyncio.open_connection(*(HTTP2 if first == PREFACE else HTTP1))
    upstream[1].write(first)
    await asyncio.gather(copy(reader, upstream[1]), copy(upstream[0], writer))


async def main():
    server = await asyncio.start_server(split, "127.0.0.1", 0)
    print(f"listening on 127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


asyncio.run(main())
