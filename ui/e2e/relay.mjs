// A story has a network of its own (portaltest), in which nothing changes while
// other tests add and remove addresses: Chromium breaks off its requests then
// (ERR_NETWORK_CHANGED). RELAYS is a folder of sockets that lead out of it, each
// named after the port of this network that leads to it.
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream';

const { RELAYS } = process.env;
for (const port of RELAYS ? readdirSync(RELAYS) : []) {
  const server = createServer((inside) => {
    const outside = connect(join(RELAYS, port));
    pipeline(inside, outside, () => undefined); // an end that breaks off ends the other
    pipeline(outside, inside, () => undefined);
  });
  server.listen(Number(port), '127.0.0.1');
  await once(server, 'listening');
  server.unref();
}
