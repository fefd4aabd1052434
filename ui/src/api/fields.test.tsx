// @vitest-environment jsdom
import { act, renderHook } from '@testing-library/react';
import { expect, test } from 'vitest';
import { ApiError } from './client';
import { elsewhere, useFieldErrors } from './fields';

const bad = () =>
  new ApiError({
    code: 'invalid',
    detail: 'no',
    errors: [
      { field: 'spec.rules[1].ports', detail: 'no', hint: 'another' },
      { field: 'meta.name', detail: 'taken' },
    ],
  });

test('an error goes once its field is changed, and comes back with the next answer', () => {
  const { result, rerender } = renderHook(({ error }) => useFieldErrors(error), { initialProps: { error: bad() } });
  expect(result.current.at('spec.rules[1].ports')).toBe('no: another');
  expect(result.current.at('spec.rules')).toBe('no: another');
  expect(result.current.at('meta.name')).toBe('taken');
  expect(result.current.at('spec.rules[0]')).toBeUndefined();
  act(() => result.current.changed('spec.rules[0].ports'));
  expect(result.current.at('spec.rules[1].ports')).toBe('no: another');
  act(() => result.current.changed('spec.rules[1].ports'));
  expect(result.current.at('spec.rules[1].ports')).toBeUndefined();
  rerender({ error: bad() });
  expect(result.current.at('spec.rules[1].ports')).toBe('no: another');
});

test('what no field shows is said above the form', () => {
  const e = bad();
  expect(elsewhere(e, ['spec.rules', 'meta.name'])).toBeNull();
  expect(elsewhere(e, ['meta.name'])).toBe(e);
});
