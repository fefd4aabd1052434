// A form's request for a shell: as a basalt command, and as curl.
import type { Resource } from '../api/resource';

type Flags = Record<string, string | number | boolean | undefined>;

/** quote formats one word for a POSIX shell. */
export const quote = (s: string) => (/^[\w@%+=:,./-]+$/.test(s) ? s : `'${s.replaceAll("'", `'\\''`)}'`);

/** sizeFlag formats a size as the command accepts it. */
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

/** asCommand returns `basalt WORDS --flag value …`; flags without a value are omitted. */
export function asCommand(words: string[], flags: Flags = {}): string {
  const given = Object.entries(flags).filter(([, v]) => v !== undefined && v !== '' && v !== false);
  return lines([
    ['basalt', ...words.map(quote)].join(' '),
    ...given.map(([k, v]) => (v === true ? `--${k}` : `--${k} ${quote(String(v))}`)),
  ]);
}

/** applied returns the command that applies an object. */
export const applied = (body: unknown) => `basalt apply -f - <<'BASALT'\n${JSON.stringify(body, null, 2)}\nBASALT`;

/** asCurl returns a request with a JSON body, if it has one; the body of a PATCH is a merge patch. */
export function asCurl(method: string, path: string, body?: unknown, server = location.origin): string {
  return lines([
    `curl -X ${method} ${quote(server + path)}`,
    '-H "Authorization: Bearer $BASALT_TOKEN"',
    ...(body === undefined
      ? []
      : [
          `-H 'Content-Type: application/${method === 'PATCH' ? 'merge-patch+json' : 'json'}'`,
          `-d ${quote(JSON.stringify(body))}`,
        ]),
  ]);
}

/** changeAsCurl returns the request that makes now of was, as a form sends it. */
export const changeAsCurl = <T>(of: Resource<T>, was: T, now: T) =>
  asCurl('PATCH', of.path(of.id(was)), of.partial(was, now));
