// Many GPUs of a node as a grid of buttons, coloured by the chosen figure, of which one is selected. It fits on a
// phone with 16 GPUs; the cards of all of them would take as many screens, and two requests each.
import { useState } from 'react';
import { useText } from '../i18n';
import { stepOf, type Heat } from '../lib/heat';
import type { CardFigures } from '../lib/pool';
import { HeatScale, HeatToggle, useHeat } from './heat';

interface Props {
  cards: CardFigures[];
  selected: string;
  select: (gpu: string) => void;
}

export function GpuGrid({ cards, selected, select }: Props) {
  const { t } = useText();
  const [by, choose] = useState<Heat>('allocated');
  const heat = useHeat(by);
  return (
    <div className="basalt-stack">
      <div>
        <HeatToggle by={by} choose={choose} />
      </div>
      <ul className="basalt-gpus" aria-label={t('gpu.title')}>
        {cards.map((c) => {
          const { level, shown, failed } = heat(c);
          const id = c.gpu.meta.id ?? '';
          return (
            <li key={id}>
              <button
                type="button"
                className={`basalt-heat basalt-heat-${stepOf(level)}`}
                aria-pressed={id === selected}
                onClick={() => select(id)}
              >
                <span>{c.gpu.meta.name}</span>{' '}
                <strong>
                  {t(`map.${by}`)} {shown}
                  {failed && `, ${t('map.failed')}`}
                </strong>{' '}
                <span>{t('map.vgpus', { n: c.vgpus })}</span>
              </button>
            </li>
          );
        })}
      </ul>
      <HeatScale by={by} />
    </div>
  );
}
