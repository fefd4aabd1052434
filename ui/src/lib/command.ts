// An instance's form as a command and as a request.
import type { Schemas } from '../api/client';
import { applied, asCurl, lines, quote, sizeFlag } from './shell';

type Instance = Schemas['Instance'];

/** machineFlags returns the flags of the virtual machine, its storage and the queue. */
const machineFlags = (s: Instance['spec']): string[] => [
  ...(s.storagePool ? [`--storage-pool ${quote(s.storagePool)}`] : []),
  ...(s.os ? [`--os ${s.os}`] : []),
  ...(s.cpu ? [`--cpu ${s.cpu}`] : []),
  ...(s.cpuPolicy ? [`--cpu-policy ${s.cpuPolicy}`] : []),
  ...(s.hugePages ? [`--huge-pages ${s.hugePages}`] : []),
  ...(s.firmware ? [`--firmware ${s.firmware}`] : []),
  ...(s.secureBoot ? ['--secure-boot'] : []),
  ...(s.tpm ? ['--tpm'] : []),
  ...(s.whenFull === 'Refuse' ? ['--no-queue'] : []),
];

/** sourceFlags returns the flags of what an instance boots from. */
function sourceFlags(s: Instance['spec']): string[] {
  if (s.app) return [`--app ${quote(s.app)}`];
  if (!s.media?.length) return [`--image ${quote(s.image || 'IMAGE')}`];
  return [
    ...s.media.map((id) => `--cdrom ${quote(id)}`),
    ...(s.rootBytes ? [`--root-size ${sizeFlag(s.rootBytes)}`] : []),
  ];
}

/** command returns the command that creates the instance. With keys or user data, which create reads from files, or
 * a deadline, which it knows as a duration only, it applies a document. */
export function command(i: Instance): string {
  const { meta, spec } = i;
  if (spec.sshKeys?.length || spec.userData || spec.queueUntil) return applied(i);
  const words = [`basalt instance create ${quote(meta.name || 'NAME')}`];
  if (meta.project) words.push(`--project ${quote(meta.project)}`);
  words.push(...sourceFlags(spec), `--flavor ${quote(spec.flavor || 'FLAVOR')}`);
  if (spec.vgpu) {
    words.push(`--vram ${sizeFlag(spec.vgpu.vramBytes)}`);
    if (spec.vgpu.sharePercent) words.push(`--gpu-share ${spec.vgpu.sharePercent}`);
    if (spec.vgpu.tier) words.push(`--gpu-tier ${spec.vgpu.tier}`);
    if (spec.vgpu.pool) words.push(`--gpu-pool ${quote(spec.vgpu.pool)}`);
    if (spec.vgpu.model) words.push(`--gpu-model ${quote(spec.vgpu.model)}`);
  }
  words.push(...machineFlags(spec));
  for (const n of spec.networks ?? []) words.push(`--network ${quote(n.network)}`);
  // The form gives all ports the same groups, as the command does.
  const groups = spec.networks?.[0]?.securityGroups;
  if (groups?.length) words.push(`--security-group ${quote(groups.join(','))}`);
  return lines(words);
}

/** curl returns the same as a request. */
export const curl = (i: Instance, server: string): string => asCurl('POST', '/v1/instances', i, server);
