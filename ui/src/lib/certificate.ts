// When a certificate expires, read from its DER form (RFC 5280, section 4.1): Certificate, TBSCertificate, and in it
// version [0], serialNumber, signature, issuer and validity.

interface Element {
  tag: number;
  /** Of its content. */
  from: number;
  to: number;
}

const sequence = 0x30;
const utcTime = 0x17;
const generalizedTime = 0x18;
const version = 0xa0;

/** elementAt returns the element that begins at a position, which ends before limit. */
function elementAt(der: Uint8Array, at: number, limit: number): Element | undefined {
  const tag = der[at];
  const first = der[at + 1];
  if (tag === undefined || first === undefined) return undefined;
  const long = first & 0x80 ? first & 0x7f : 0;
  if (long > 3) return undefined;
  let length = long ? 0 : first;
  for (let i = 0; i < long; i++) length = length * 256 + (der[at + 2 + i] ?? 0);
  const from = at + 2 + long;
  return from + length <= limit ? { tag, from, to: from + length } : undefined;
}

/** elements returns the elements of a sequence; at most as many as are needed here. */
function elements(der: Uint8Array, of: Element | undefined): Element[] {
  const out: Element[] = [];
  if (of?.tag !== sequence) return out;
  for (let at = of.from; at < of.to && out.length < 6;) {
    const e = elementAt(der, at, of.to);
    if (!e) break;
    out.push(e);
    at = e.to;
  }
  return out;
}

/** time returns the moment of a UTCTime, whose years are 1950 to 2049, or a GeneralizedTime. */
function time(der: Uint8Array, e: Element | undefined): Date | undefined {
  if (e?.tag !== utcTime && e?.tag !== generalizedTime) return undefined;
  const text = String.fromCharCode(...der.subarray(e.from, Math.min(e.to, e.from + 20)));
  const digits = /^(\d\d(?:\d\d)?)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(text)?.slice(1).map(Number);
  if (!digits) return undefined;
  const [y = 0, month = 0, day, h, m, s] = digits;
  const year = e.tag === generalizedTime ? y : y < 50 ? 2000 + y : 1900 + y;
  return new Date(Date.UTC(year, month - 1, day, h, m, s));
}

/** expiry returns the end of the validity of a certificate in PEM form; undefined if it cannot be read. */
export function expiry(pem: string): Date | undefined {
  const base64 = /-----BEGIN CERTIFICATE-----([\sA-Za-z0-9+/=]+)-----END CERTIFICATE-----/.exec(pem)?.[1];
  if (!base64) return undefined;
  let der: Uint8Array;
  try {
    der = Uint8Array.from(atob(base64.replaceAll(/\s/g, '')), (c) => c.charCodeAt(0));
  } catch {
    return undefined;
  }
  const tbs = elements(der, elementAt(der, 0, der.length))[0];
  const fields = elements(der, tbs);
  const validity = fields[fields[0]?.tag === version ? 4 : 3];
  return time(der, elements(der, validity)[1]);
}
