// Amounts of money as users write them. The API has integers of micro-units; no floating-point fraction is used in
// between.

const pattern = /^(-?)(\d{1,12})(?:[.,](\d{1,6}))?$/;

/** parseMicros parses 12.50 or 12,5; undefined if it is not an amount with at most six decimals. */
export function parseMicros(text: string): number | undefined {
  const m = pattern.exec(text.trim());
  if (!m) return undefined;
  const micros = BigInt(m[2] ?? '0') * 1_000_000n + BigInt((m[3] ?? '').padEnd(6, '0'));
  return Number(m[1] ? -micros : micros);
}

/** decimal formats micro-units for a field: with as many decimals as needed, but at least two for fractions. */
export function decimal(micros: number | bigint): string {
  const n = BigInt(micros);
  const abs = n < 0n ? -n : n;
  const rest = (abs % 1_000_000n).toString().padStart(6, '0').replace(/0+$/, '');
  return `${n < 0n ? '-' : ''}${abs / 1_000_000n}${rest && `.${rest.padEnd(2, '0')}`}`;
}
