// The kinds of GPUs for a first instance, each a link to the form with it chosen, with the prices that the form shows.
import { Label } from '@patternfly/react-core';
import { Link } from 'wouter';
import { useOffers } from '../../api/offers';
import { useFlavors } from '../../api/queries';
import { useText } from '../../i18n';
import { formatBytes, formatMicros } from '../../lib/format';
import { newWithGpu } from '../../lib/new-instance';
import { kindsOf } from '../../lib/offer';
import { smallest } from '../../lib/source';
import { useProject } from '../../parts/project';

export function ChooseGpu() {
  const { t, language } = useText();
  const { projects, project } = useProject();
  const flavor = smallest(useFlavors().data?.items ?? [])?.meta.name ?? '';
  const offers = useOffers({ project: project || (projects[0]?.meta.id ?? ''), flavor, rootBytes: 0 });
  const kinds = kindsOf(offers.data?.items ?? [], 'standard');
  const several = new Set(kinds.map((k) => k.pool)).size > 1;
  return (
    <ul className="basalt-tiles basalt-plain" aria-label={t('first.gpus')}>
      {kinds.map((k) => (
        <li key={k.id}>
          <Link href={newWithGpu(k)} className="basalt-tile">
            <strong>{several ? `${k.model} (${k.pool})` : k.model}</strong>
            <span className="basalt-note">{t('inst.vram', { size: formatBytes(k.vramBytes, language) })}</span>
            <span>
              {t('first.from', {
                price: t('unit.perHour', { price: formatMicros(k.fromMicros, k.currency, language) }),
              })}
            </span>
            <Label color={k.free > 0 ? 'green' : 'grey'} isCompact>
              {k.free > 0 ? t('first.free', { n: k.free.toLocaleString(language) }) : t('first.full')}
            </Label>
          </Link>
        </li>
      ))}
    </ul>
  );
}
