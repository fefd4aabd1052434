// What a form sends, as a request that a program would make.
import { quote } from './command';

export const lines = (words: string[]) => words.join(' \\\n  ');

export function request(method: string, path: string, body: unknown, server = location.origin): string {
  return lines([
    `curl -X ${method} ${quote(server + path)}`,
    `-H "Authorization: Bearer $BASALT_TOKEN"`,
    ...(body === undefined ? [] : [`-H 'Content-Type: application/json'`, `-d ${quote(JSON.stringify(body))}`]),
  ]);
}

/** document is an object as a command applies it. */
export const document = (body: unknown) => `basalt apply -f - <<'BASALT'\n${JSON.stringify(body, null, 2)}\nBASALT`;

/** passwordLink is where a new user sets a password. */
export const passwordLink = (token: string) => `${location.origin}/#/password?token=${encodeURIComponent(token)}`;
