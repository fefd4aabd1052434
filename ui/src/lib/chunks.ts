/** chunks splits data into chunks of at most size bytes: the server does not accept longer messages. */
export function* chunks(data: Uint8Array<ArrayBuffer>, size = 32 << 10): Generator<Uint8Array<ArrayBuffer>> {
  for (let at = 0; at < data.length; at += size) yield data.subarray(at, at + size);
}
