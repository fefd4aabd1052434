// What a form sends, as a command and as a request.
import { quote } from './command';

type Flags = Record<string, string | number | boolean | undefined>;

const lines = (words: string[]) => words.join(' \\\n  ');

/** asCommand is `basalt WORDS --flag value …`; flags without a value are left out. */
export function asCommand(words: string[], flags: Flags = {}): string {
  const given = Object.entries(flags).filter(([, v]) => v !== undefined && v !== '' && v !== false);
  return lines([['basalt', ...words.map(quote)].join(' '), ...given.map(([k, v]) => (v === true ? `--${k}` : `--${k} ${quote(String(v))}`))]);
}

/** asCurl is a request with a JSON body, where it has one. */
export function asCurl(method: string, url: string, body?: unknown): string {
  return lines([
    `curl -X ${method} ${quote(url)}`,
    '-H "Authorization: Bearer $BASALT_TOKEN"',
    ...(body === undefined ? [] : ["-H 'Content-Type: application/json'", `-d ${quote(JSON.stringify(body))}`]),
  ]);
}
