import { expect, test } from 'vitest';
import { refused } from './client';
import { atField, withHint } from './fields';

test('an error is that of a field, or of one below it', () => {
  const e = refused(400, {
    code: 'invalid',
    detail: 'port 0 is not valid',
    errors: [{ field: 'spec.rules[0].ports', detail: 'port 0 is not valid', hint: '1 to 65535' }],
  });
  expect(atField(e, 'spec.rules[0]')).toBe('port 0 is not valid: 1 to 65535');
  expect(atField(e, 'spec.rule')).toBeUndefined();
  expect(atField(null, 'spec')).toBeUndefined();
});

test('a hint follows a text, or a sentence', () => {
  expect(withHint('too small')).toBe('too small');
  expect(withHint('too small', 'request more')).toBe('too small: request more');
  expect(withHint('There is no room.', 'let it wait')).toBe('There is no room. Let it wait.');
});
