import { expect, test } from 'vitest';
import { csv, fileName } from './csv';

const one = (v: string | number | boolean | undefined) =>
  csv([[v]])
    .replace(/^\uFEFF/, '')
    .replace(/\r\n$/, '');

test('a table is what RFC 4180 says, in UTF-8 with its mark', () => {
  expect(
    csv([
      ['Name', 'Size'],
      ['a, "b"', 12],
      [undefined, true],
    ]),
  ).toBe('\uFEFFName,Size\r\n"a, ""b""",12\r\n,true\r\n');
});

test('what would be a formula is text', () => {
  for (const v of ['=1+1', '+1', '-1', '@SUM(A1)', '|x', '%x', '\uFF1D1']) expect(one(v), v).toBe(`'${v}`);
  expect(one('\t=1')).toBe('"\'\t=1"');
  expect(one('\rx')).toBe('"\'\rx"');
  expect(one(' =1')).toBe("' =1");
  expect(one('"=1"')).toBe('"\'""=1"""');
  expect(one("=cmd|' /C calc'!A0")).toBe("'=cmd|' /C calc'!A0");
});

test('numbers and harmless text stay as they are', () => {
  expect(one(-5)).toBe('-5');
  expect(one('train-1')).toBe('train-1');
  expect(one('2026-11-28T10:00:00Z')).toBe('2026-11-28T10:00:00Z');
  expect(one('line\nline')).toBe('"line\nline"');
  expect(one('')).toBe('');
});

test('a file is named after its list and the moment', () => {
  expect(fileName('volumes', new Date('2026-11-28T10:05:06Z'))).toBe('volumes-20261128T1005Z.csv');
});
