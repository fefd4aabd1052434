// What a form sends, as a shell has it: the basalt command, and curl.
type Flags = Record<string, string | number | boolean | undefined>;

/** quote is one word of a POSIX shell. */
export const quote = (s: string) => (/^[\w@%+=:,./-]+$/.test(s) ? s : `'${s.replaceAll("'", `'\\''`)}'`);

/** sizeFlag is a size as the command takes it. */
export function sizeFlag(bytes: number): string {
  for (const [unit, n] of [
    ['TiB', 2 ** 40],
    ['GiB', 2 ** 30],
    ['MiB', 2 ** 20],
  ] as const)
    if (bytes >= n && bytes % n === 0) return `${bytes / n}${unit}`;
  return String(bytes);
}

export const lines = (words: string[]) => words.join(' \\\n  ');

/** asCommand is `basalt WORDS --flag value …`; flags without a value are left out. */
export function asCommand(words: string[], flags: Flags = {}): string {
  const given = Object.entries(flags).filter(([, v]) => v !== undefined && v !== '' && v !== false);
  return lines([
    ['basalt', ...words.map(quote)].join(' '),
    ...given.map(([k, v]) => (v === true ? `--${k}` : `--${k} ${quote(String(v))}`)),
  ]);
}

/** applied is an object as a command applies it. */
export const applied = (body: unknown) => `basalt apply -f - <<'BASALT'\n${JSON.stringify(body, null, 2)}\nBASALT`;

/** asCurl is a request with a JSON body, where it has one. */
export function asCurl(method: string, path: string, body?: unknown, server = location.origin): string {
  return lines([
    `curl -X ${method} ${quote(server + path)}`,
    '-H "Authorization: Bearer $BASALT_TOKEN"',
    ...(body === undefined ? [] : ["-H 'Content-Type: application/json'", `-d ${quote(JSON.stringify(body))}`]),
  ]);
}
