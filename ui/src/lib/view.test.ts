import { expect, test } from 'vitest';
import { plain, shownColumns, viewOf } from './view';

const columns = [{ id: 'name' }, { id: 'state' }, { id: 'labels', extra: true }];
const ids = (columns_: Record<string, boolean>) =>
  shownColumns(columns, { density: 'compact', columns: columns_ }).map((c) => c.id);

test('columns are shown as they were chosen, the first always', () => {
  expect(ids({})).toEqual(['name', 'state']);
  expect(ids({ name: false, state: false, labels: true })).toEqual(['name', 'labels']);
});

test('what was kept is read, and rubbish is not', () => {
  const kept = { density: 'comfortable' as const, columns: { state: false } };
  expect(viewOf(JSON.stringify(kept))).toEqual(kept);
  for (const text of [null, '', '{', 'null', '7', '[]', '{"density":1,"columns":{"a":"b"}}'])
    expect(viewOf(text)).toEqual(plain);
});
