// A chart of stacked bars, one per day. It is accessible: the slider over the bars, which arrow keys move,
// announces each day, and the sums of the parts are in the list next to it.
import { useState, type PointerEvent } from 'react';
import { useText } from '../i18n';
import { niceStep } from '../lib/chart';
import { useWidth } from './width';

export interface StackPart {
  key: string;
  label: string;
  values: number[];
}

interface Props {
  title: string;
  /** The label of each bar; as many as there are values. */
  days: string[];
  parts: StackPart[];
  format: (value: number) => string;
}

const height = 200;
const margin = { left: 72, right: 8, top: 8, bottom: 22 }; // px: space for the axes' labels
const gap = 0.2; // as a fraction of a bar's width

/** How many colours the parts of a stack have; the last is for all others. */
export const stackColors = 6;

export function Stacked({ title, days, parts, format }: Props) {
  const { t } = useText();
  const { ref, width } = useWidth();
  const [chosen, choose] = useState<number | null>(null);
  const totals = days.map((_, i) => parts.reduce((n, p) => n + (p.values[i] ?? 0), 0));
  const step = niceStep(Math.max(1, ...totals) / 4, 'percent');
  const top = Math.max(1, Math.ceil(Math.max(1, ...totals) / step)) * step;
  const ticks = Array.from({ length: Math.round(top / step) + 1 }, (_, i) => i * step);
  const box = { width: width - margin.left - margin.right, height: height - margin.top - margin.bottom };
  const place = box.width / Math.max(1, days.length);
  const y = (v: number) => margin.top + box.height * (1 - v / top);
  const x = (i: number) => margin.left + place * (i + gap / 2);
  const reading = (i: number) =>
    `${days[i]}: ${format(totals[i] ?? 0)}${parts
      .filter((p) => (p.values[i] ?? 0) > 0)
      .map((p) => `, ${p.label} ${format(p.values[i] ?? 0)}`)
      .join('')}`;
  const last = Math.max(0, days.length - 1);
  const point = (e: PointerEvent<HTMLDivElement>) => {
    const at = Math.floor((e.clientX - e.currentTarget.getBoundingClientRect().left - margin.left) / place);
    choose(Math.min(last, Math.max(0, at)));
  };
  const every = Math.max(1, Math.ceil(days.length / Math.max(1, Math.floor(box.width / 70))));
  return (
    <figure className="basalt-chart" aria-label={title}>
      <div ref={ref} className="basalt-plot basalt-stacked" onPointerMove={point} onPointerLeave={() => choose(null)}>
        <input
          type="range"
          aria-label={t('chart.day', { title })}
          min={0}
          max={last}
          value={chosen ?? last}
          aria-valuetext={days.length > 0 ? reading(chosen ?? last) : t('chart.gap')}
          onChange={(e) => choose(Number(e.target.value))}
          onBlur={() => choose(null)}
        />
        <svg width={width} height={height} aria-hidden="true">
          {ticks.map((v) => (
            <g key={v}>
              <line className="basalt-grid" x1={margin.left} x2={margin.left + box.width} y1={y(v)} y2={y(v)} />
              <text className="basalt-tick" x={margin.left - 6} y={y(v)} dy="0.32em" textAnchor="end">
                {format(v)}
              </text>
            </g>
          ))}
          {days.map((day, i) => {
            let below = 0;
            return (
              <g key={day} className={chosen === null || chosen === i ? undefined : 'basalt-faint'}>
                {parts.map((p, n) => {
                  const value = p.values[i] ?? 0;
                  const from = below;
                  below += value;
                  return (
                    value > 0 && (
                      <rect
                        key={p.key}
                        className={`basalt-part-${n}`}
                        x={x(i)}
                        width={Math.max(1, place * (1 - gap))}
                        y={y(below)}
                        height={Math.max(0, y(from) - y(below))}
                      />
                    )
                  );
                })}
                {i % every === 0 && (
                  <text className="basalt-tick" x={x(i) + (place * (1 - gap)) / 2} y={height - 5} textAnchor="middle">
                    {day}
                  </text>
                )}
              </g>
            );
          })}
        </svg>
      </div>
      <p className="basalt-note basalt-chart-reading" aria-hidden="true">
        {chosen !== null && days.length > 0 ? reading(chosen) : ''}
      </p>
    </figure>
  );
}

/** PartKey shows the colour of a part of a stack. */
export const PartKey = ({ index }: { index: number }) => (
  <svg className="basalt-chart-key" width="12" height="12" aria-hidden="true">
    <rect className={`basalt-part-${index}`} width="12" height="12" rx="2" />
  </svg>
);
