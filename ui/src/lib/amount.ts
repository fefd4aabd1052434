// Amounts of money as people write them. The API's are integers of micro-units;
// nothing on the way is a fraction of a float.

const pattern = /^(-?)(\d{1,12})(?:[.,](\d{1,6}))?$/;

/** parseMicros reads 12.50 or 12,5; undefined: it is no amount of at most six digits behind the point. */
export function parseMicros(text: string): number | undefined {
  const m = pattern.exec(text.trim());
  if (!m) return undefined;
  const micros = BigInt(m[2] ?? '0') * 1_000_000n + BigInt((m[3] ?? '').padEnd(6, '0'));
  return Number(m[1] ? -micros : micros);
}

/** decimal is micro-units as a field shows them: no more digits than it takes, and two at least of what is no whole number. */
export function decimal(micros: number | bigint): string {
  const n = BigInt(micros);
  const abs = n < 0n ? -n : n;
  const rest = (abs % 1_000_000n).toString().padStart(6, '0').replace(/0+$/, '');
  return `${n < 0n ? '-' : ''}${abs / 1_000_000n}${rest && `.${rest.padEnd(2, '0')}`}`;
}
