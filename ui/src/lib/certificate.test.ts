import { expect, test } from 'vitest';
import { expiry } from './certificate';

/** pem encodes bytes as a certificate. */
const pem = (bytes: number[]) =>
  `-----BEGIN CERTIFICATE-----\n${btoa(String.fromCharCode(...bytes))}\n-----END CERTIFICATE-----\n`;

const ascii = (text: string) => [...text].map((c) => c.charCodeAt(0));
const der = (tag: number, ...content: number[][]): number[] => {
  const all = content.flat();
  const length = all.length < 128 ? [all.length] : [0x82, all.length >> 8, all.length & 255];
  return [tag, ...length, ...all];
};
const sequence = (...content: number[][]) => der(0x30, ...content);
const serial = der(2, [1]);
const begin = der(0x17, ascii('200101000000Z'));

/** certificate has what is read of one, and a long signature. */
const certificate = (end: number[], version: number[][] = [der(0xa0, der(2, [2]))]) =>
  sequence(
    sequence(...version, serial, sequence([]), sequence([]), sequence(begin, end), sequence([])),
    der(3, Array<number>(300).fill(7)),
  );

test('the end of the validity, in both forms of time, with and without a version', () => {
  expect(expiry(pem(certificate(der(0x17, ascii('491231235959Z')))))?.toISOString()).toBe('2049-12-31T23:59:59.000Z');
  expect(expiry(pem(certificate(der(0x17, ascii('500101000000Z')))))?.getUTCFullYear()).toBe(1950);
  expect(expiry(pem(certificate(der(0x18, ascii('20500102030405Z')), [])))?.toISOString()).toBe(
    '2050-01-02T03:04:05.000Z',
  );
});

test('what is no certificate has no end, wherever it is cut', () => {
  const whole = certificate(der(0x17, ascii('491231235959Z')));
  for (let n = 0; n < 60; n++) expect(expiry(pem(whole.slice(0, n)))).toBeUndefined();
  expect(expiry('')).toBeUndefined();
  expect(expiry('-----BEGIN CERTIFICATE-----\n=a=\n-----END CERTIFICATE-----')).toBeUndefined();
  expect(expiry(pem(certificate(der(0x17, ascii('4912312359Z')))))).toBeUndefined();
  expect(expiry(pem(certificate(der(4, ascii('491231235959Z')))))).toBeUndefined();
});
