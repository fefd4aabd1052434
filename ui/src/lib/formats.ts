// The formats of the API's description that a browser can tell. The Go validators and these are held to the same
// examples (api/testdata/formats.json): what is accepted here, the server accepts too, as far as form goes.

const word = (pattern: RegExp) => (s: string) => pattern.test(s);

/** bits4 of an IPv4 address as its 32 bits, as netip reads it: four numbers without leading zeros. */
function bits4(s: string): bigint | undefined {
  if (!/^(?:(?:0|[1-9]\d{0,2})(?:\.(?!$)|$)){4}$/.test(s)) return undefined;
  const parts = s.split('.').map(Number);
  return parts.every((n) => n < 256) ? parts.reduce((sum, n) => sum * 256n + BigInt(n), 0n) : undefined;
}

/** bits6 of an IPv6 address without a zone, by the browser's own parser. */
function bits6(s: string): bigint | undefined {
  if (!/^[0-9a-f:.]+$/i.test(s) || !URL.canParse(`http://[${s}]/`)) return undefined;
  const [head = '', tail] = new URL(`http://[${s}]/`).hostname.slice(1, -1).split('::');
  const [left, right] = [head, tail ?? ''].map((part) => part.split(':').filter(Boolean)) as [string[], string[]];
  const groups = [...left, ...Array<string>(8 - left.length - right.length).fill('0'), ...right];
  const bits = groups.reduce((sum, g) => sum * 65536n + BigInt(`0x${g}`), 0n);
  return bits >> 32n === 0xffffn ? undefined : bits; // an IPv4 address in the clothes of IPv6
}

/** network reports whether s is a prefix whose host bits are zero. */
const network = (parse: (s: string) => bigint | undefined, width: number) => (s: string) => {
  const [, address = '', length = ''] = /^([^/]+)\/(0|[1-9]\d{0,2})$/.exec(s) ?? [];
  const bits = parse(address);
  const host = width - Number(length);
  return length !== '' && bits !== undefined && host >= 0 && (bits & ((1n << BigInt(host)) - 1n)) === 0n;
};

const cidr4 = network(bits4, 32);
const cidr6 = network(bits6, 128);

/** ports is one port or a range. */
function ports(s: string): boolean {
  const [, first = '', last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(s) ?? [];
  return first !== '' && Number(first) >= 1 && Number(first) <= Number(last) && Number(last) <= 65535;
}

export const formats = {
  name: word(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/),
  mailbox: word(/^[a-z0-9!#$%&'*+/=?^_{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_{|}~-]+)*@[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i),
  cidr4,
  cidr6,
  cidr: (s) => cidr4(s) || cidr6(s),
  address: (s) => bits4(s) !== undefined || bits6(s) !== undefined,
  ports,
  color: word(/^#[0-9a-f]{6}$/),
  sha256: word(/^[0-9a-f]{64}$/i),
} as const satisfies Record<string, (s: string) => boolean>;

export type Format = keyof typeof formats;
