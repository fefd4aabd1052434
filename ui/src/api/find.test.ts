import { expect, test } from 'vitest';
import { hrefOf } from './find';

test('an object leads to its page, or to its list', () => {
  expect(hrefOf(['/instances'], 'ins-1', ['/instances', '/instances/:id/:tab?'])).toBe('/instances/ins-1');
  expect(hrefOf(['/users', '/members'], 'usr-1', ['/members'])).toBe('/members?search=usr-1');
  expect(hrefOf(['/images'], 'img-1', ['/instances/:id'])).toBeUndefined();
});
