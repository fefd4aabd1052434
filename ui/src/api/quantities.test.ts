import { expect, test } from 'vitest';
import { keepQuantities, quantityOf, withExact } from './quantities';

const parsed = (json: string) => JSON.parse(withExact(json)) as { quantity: number; quantityExact?: string }[];
const exactly = (json: string) => parsed(json).map(quantityOf);

test('quantities above 2^53 keep their digits', () => {
  expect(exactly('[{"quantity":9007199254740993,"meter":"m"},{"meter":"m","quantity":-9007199254740993}]')).toEqual([
    9007199254740993n,
    -9007199254740993n,
  ]);
  expect(exactly('[{"quantity":9223372036854775807}]')).toEqual([9223372036854775807n]);
});

test('others are numbers, and no object has a further field', () => {
  const json = '[{"quantity":9007199254740991},{"quantity":0},{"quantity":1.5}]';
  expect(withExact(json)).toBe(json);
  expect(exactly(json)).toEqual([9007199254740991, 0, 1.5]);
});

test('names that look like a quantity stay as they are', () => {
  const hostile = [{ name: '"quantity":99999999999999999,', quantity: 1 }, { name: '\\"quantity":99999999999999999}' }];
  expect(parsed(JSON.stringify(hostile))).toEqual(hostile);
  const other = '[{"totalQuantity":99999999999999999,"quantity":"99999999999999999"}]';
  expect(withExact(other)).toBe(other);
});

test('only responses with usage are changed', async () => {
  const body = '{"items":[{"quantity":9007199254740993}]}';
  const answer = (type = 'application/json', status = 200) =>
    new Response(body, { status, headers: { 'Content-Type': type, ETag: '"1"' } });
  const at = (path: string, method = 'GET') => new Request(`https://cloud.example/portal/v1/${path}`, { method });
  const got = await keepQuantities(at('usage?organization=acme'), answer());
  expect(got.headers.get('ETag')).toBe('"1"');
  expect(await got.text()).toContain('"quantityExact":"9007199254740993"');
  expect(await (await keepQuantities(at('invoice-preview'), answer())).text()).toContain('quantityExact');
  for (const [request, response] of [
    [at('price-books/pb-1'), answer()],
    [at('usage-export'), answer()],
    [at('usage', 'POST'), answer()],
    [at('usage'), answer('text/csv')],
    [at('usage'), answer('application/json', 500)],
  ] as const)
    expect(await keepQuantities(request, response)).toBe(response);
});
