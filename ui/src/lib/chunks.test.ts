import { expect, test } from 'vitest';
import { chunks } from './chunks';

test('what is pasted goes in pieces', () => {
  const sent = [...chunks(new Uint8Array(10), 4)];
  expect(sent.map((c) => c.length)).toEqual([4, 4, 2]);
  expect([...chunks(new Uint8Array(0))]).toEqual([]);
});
