// An instance as a command and as a request: what the form would send.
import type { Schemas } from '../api/client';

type Instance = Schemas['Instance'];

/** quote is one word of a POSIX shell. */
export const quote = (s: string) => (/^[\w@%+=:,./-]+$/.test(s) ? s : `'${s.replaceAll("'", `'\\''`)}'`);

/** sizeFlag is a size as the command takes it. */
export function sizeFlag(bytes: number): string {
  for (const [unit, n] of [['TiB', 2 ** 40], ['GiB', 2 ** 30], ['MiB', 2 ** 20]] as const) if (bytes >= n && bytes % n === 0) return `${bytes / n}${unit}`;
  return String(bytes);
}

const lines = (words: string[]) => words.join(' \\\n  ');

/** command makes the instance; with keys or user data, which create takes from files, it applies a document. */
export function command(i: Instance): string {
  const { meta, spec } = i;
  if (spec.sshKeys?.length || spec.userData) return `basalt apply -f - <<'BASALT'\n${JSON.stringify(i, null, 2)}\nBASALT`;
  const words = [`basalt instance create ${quote(meta.name || 'NAME')}`];
  if (meta.project) words.push(`--project ${quote(meta.project)}`);
  words.push(spec.app ? `--app ${quote(spec.app)}` : `--image ${quote(spec.image || 'IMAGE')}`, `--flavor ${quote(spec.flavor || 'FLAVOR')}`);
  if (spec.vgpu) {
    words.push(`--vram ${sizeFlag(spec.vgpu.vramBytes)}`);
    if (spec.vgpu.sharePercent) words.push(`--gpu-share ${spec.vgpu.sharePercent}`);
    if (spec.vgpu.pool) words.push(`--gpu-pool ${quote(spec.vgpu.pool)}`);
  }
  for (const n of spec.networks ?? []) words.push(`--network ${quote(n.network)}`);
  // The form gives all ports the same groups, as the command does.
  const groups = spec.networks?.[0]?.securityGroups;
  if (groups?.length) words.push(`--security-group ${quote(groups.join(','))}`);
  return lines(words);
}

/** curl is the same as a request. */
export function curl(i: Instance, server: string): string {
  return lines([
    `curl -X POST ${quote(`${server}/v1/instances`)}`,
    `-H "Authorization: Bearer $BASALT_TOKEN"`,
    `-H 'Content-Type: application/json'`,
    `-d ${quote(JSON.stringify(i))}`,
  ]);
}
