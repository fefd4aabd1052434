// The properties of an instance.
import { Card, CardBody, CardTitle } from '@patternfly/react-core';
import type { Instance } from '../../api/client';
import { useApps, useFlavors, useImages } from '../../api/queries';
import { useText } from '../../i18n';
import { told } from '../../lib/cause';
import { formatBytes, formatPercent, formatTime } from '../../lib/format';
import { pendingCPU, pendingPolicy } from '../../lib/machine';
import { noteOf, phaseOf } from '../../lib/phase';
import { Rows } from '../../parts/rows';
import { useTell } from '../../parts/told';

export function Details({ instance: i }: { instance: Instance }) {
  const { t, count, language } = useText();
  const tell = useTell();
  const flavors = useFlavors();
  const images = useImages('');
  const apps = useApps();
  const { spec, assignment: a = {}, status: s = {} } = i;
  const flavor = flavors.data?.items.find((f) => f.meta.id === spec.flavor);
  const v = spec.vgpu;
  const [policy, cpu] = [pendingPolicy(i, flavor?.spec), pendingCPU(i)];
  const pending = (now: string, next: string | undefined) => (next ? t('mach.pending', { now, next }) : now);
  return (
    <Card>
      <CardTitle component="h2">{t('one.details')}</CardTitle>
      <CardBody>
        <Rows
          rows={[
            [t('one.doing'), s.lastError ? '' : tell(noteOf(i))],
            [t('one.error'), s.lastError && tell(told(s.lastError, s.cause))],
            [t('one.started'), phaseOf(i) === 'Running' && formatTime(s.startedAt, language)],
            [
              t('one.app'),
              spec.app && (apps.data?.items.find((x) => x.meta.id === spec.app)?.spec.displayName ?? spec.app),
            ],
            [t('one.image'), images.data?.items.find((x) => x.meta.id === spec.image)?.meta.name ?? spec.image],
            [t('one.flavor'), flavor?.meta.name ?? spec.flavor],
            [
              t('inst.size'),
              a.vcpus ? `${count('inst.vcpus', a.vcpus)}, ${formatBytes(a.memoryBytes ?? 0, language)}` : '',
            ],
            [
              t('mach.policy'),
              policy.now && pending(t(`mach.policy.${policy.now}`), policy.next && t(`mach.policy.${policy.next}`)),
            ],
            [
              t('mach.cpu'),
              cpu.now &&
                pending(
                  [t(`mach.cpu.${cpu.now}`), s.machine?.cpu?.cpu?.model].filter(Boolean).join(', '),
                  cpu.next && t(`mach.cpu.${cpu.next}`),
                ),
            ],
            [
              t('one.rootDisk'),
              (spec.rootBytes || flavor?.spec.rootBytes) &&
                formatBytes(spec.rootBytes || flavor?.spec.rootBytes || 0, language),
            ],
            [
              t('inst.vgpu'),
              v
                ? `${t('inst.vram', { size: formatBytes(v.vramBytes, language) })}, ${v.sharePercent ? t('inst.share', { percent: formatPercent(v.sharePercent, language) }) : t('inst.bestEffort')}${v.tier ? `, ${v.tier}` : ''}`
                : t('common.none'),
            ],
            [
              t('inst.addresses'),
              a.ports?.length
                ? a.ports
                    .flatMap((p) => [p.address4, p.address6])
                    .filter(Boolean)
                    .join(', ')
                : t('one.networkNone'),
            ],
            [t('one.node'), a.node],
            [t('one.id'), <code key="id">{i.meta.id}</code>],
            [t('one.created'), formatTime(i.meta.createdAt, language)],
          ]}
        />
      </CardBody>
    </Card>
  );
}
