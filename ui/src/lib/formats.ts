// The formats of the API's description that a browser can check. The Go validators and these are tested with the
// same examples (api/testdata/formats.json): the server accepts the form of everything that is accepted here.

const word = (pattern: RegExp) => (s: string) => pattern.test(s);

/** bits4 returns the 32 bits of an IPv4 address as netip parses it: four numbers without leading zeros. */
function bits4(s: string): bigint | undefined {
  if (!/^(?:(?:0|[1-9]\d{0,2})(?:\.(?!$)|$)){4}$/.test(s)) return undefined;
  const parts = s.split('.').map(Number);
  return parts.every((n) => n < 256) ? parts.reduce((sum, n) => sum * 256n + BigInt(n), 0n) : undefined;
}

/** bits6 returns the bits of an IPv6 address without a zone, with the browser's own parser. */
function bits6(s: string): bigint | undefined {
  if (!/^[0-9a-f:.]+$/i.test(s) || !URL.canParse(`http://[${s}]/`)) return undefined;
  const [head = '', tail] = new URL(`http://[${s}]/`).hostname.slice(1, -1).split('::');
  const [left, right] = [head, tail ?? ''].map((part) => part.split(':').filter(Boolean)) as [string[], string[]];
  const groups = [...left, ...Array<string>(8 - left.length - right.length).fill('0'), ...right];
  const bits = groups.reduce((sum, g) => sum * 65536n + BigInt(`0x${g}`), 0n);
  return bits >> 32n === 0xffffn ? undefined : bits; // an IPv4-mapped IPv6 address
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

/** ports reports whether s is a port or a range of ports. */
function ports(s: string): boolean {
  const [, first = '', last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(s) ?? [];
  return first !== '' && Number(first) >= 1 && Number(first) <= Number(last) && Number(last) <= 65535;
}

export const formats = {
  name: word(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/),
  mailbox: word(/^[a-z0-9!#$%&'*+/=?^_{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_{|}~-]+)*@[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i),
  host: (s) =>
    s.length <= 100 &&
    /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/.test(s) &&
    !/\.(localhost|invalid|onion|alt|arpa)$/.test(s),
  cidr4,
  cidr6,
  cidr: (s) => cidr4(s) || cidr6(s),
  address: (s) => bits4(s) !== undefined || bits6(s) !== undefined,
  ports,
  color: word(/^#[0-9a-f]{6}$/),
  sha256: word(/^[0-9a-f]{64}$/i),
} as const satisfies Record<string, (s: string) => boolean>;

export type Format = keyof typeof formats;
