// Parts of the maps of GPUs: the choice of the figure, its text, and the scale of colours.
import { ToggleGroup, ToggleGroupItem } from '@patternfly/react-core';
import { useText } from '../i18n';
import { formatBytes, formatPercent } from '../lib/format';
import { heatOf, heats, heatSteps, type Heat } from '../lib/heat';
import type { CardFigures } from '../lib/pool';

export function HeatToggle({ by, choose }: { by: Heat; choose: (h: Heat) => void }) {
  const { t } = useText();
  return (
    <ToggleGroup isCompact aria-label={t('map.by')}>
      {heats.map((h) => (
        <ToggleGroupItem
          key={h}
          buttonId={`heat-${h}`}
          text={t(`map.${h}`)}
          isSelected={by === h}
          onChange={() => choose(h)}
        />
      ))}
    </ToggleGroup>
  );
}

/** useHeat returns a function that returns a GPU's level, its value as text, and a label with all it is. */
export function useHeat(by: Heat) {
  const { t, language } = useText();
  return (c: CardFigures) => {
    const { level, value } = heatOf(c, by);
    const shown =
      value === undefined
        ? '–'
        : by === 'temperature'
          ? t('unit.celsius', { n: Math.round(value) })
          : formatPercent(Math.round(value), language);
    const failed = (c.gpu.status?.conditions ?? []).some((x) => !x.status);
    const label = t('map.gpu', {
      name: c.gpu.meta.name,
      model: c.gpu.status?.model ?? '',
      vram: formatBytes(c.vramBytes, language),
      what: t(`map.${by}`),
      value: shown,
      vgpus: c.vgpus,
    });
    return { level, shown, failed, label: failed ? `${label}, ${t('map.failed')}` : label };
  };
}

export function HeatScale({ by }: { by: Heat }) {
  const { t } = useText();
  return (
    <p className="basalt-note basalt-map-scale" aria-hidden="true">
      {by === 'temperature' ? t('unit.celsius', { n: '≤ 30' }) : '0 %'}
      {Array.from({ length: heatSteps + 1 }, (_, i) => (
        <span key={i} className={`basalt-heat basalt-heat-${i}`} />
      ))}
      {by === 'temperature' ? t('unit.celsius', { n: '≥ 90' }) : '100 %'}
    </p>
  );
}
