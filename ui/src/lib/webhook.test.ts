import { expect, test } from 'vitest';
import { stateOf } from './webhook';

test('what matters most is said', () => {
  const spec = { url: 'https://example.com' };
  expect(stateOf({ spec })).toBe('active');
  expect(stateOf({ spec, status: { attempts: 3, givenUp: 1 } })).toBe('retrying');
  expect(stateOf({ spec, status: { givenUp: 1 } })).toBe('lossy');
  expect(stateOf({ spec: { ...spec, paused: true }, status: { attempts: 3 } })).toBe('paused');
});
