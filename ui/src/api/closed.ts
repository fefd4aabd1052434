// Why a console's websocket has ended, and when to try again.

/** Close codes from here on are 4000 and an HTTP status: what the API says of a
 * console that it does not open. The reason is its message. */
const refused = 4000;
const goingAway = 1001; // RFC 6455: the machine stopped

export type End = { why: 'refused'; message: string } | { why: 'ended' } | { why: 'lost' };

export function endOf({ code, reason }: { code: number; reason: string }): End {
  if (code >= refused) return { why: 'refused', message: reason };
  return { why: code === goingAway ? 'ended' : 'lost' };
}

const longest = 15_000;

/** pauseAfter failures in a row, in ms. */
export const pauseAfter = (failures: number): number => Math.min(1000 * 2 ** Math.min(failures, 10), longest);
