// A line chart over time. It is accessible: the latest values are in its legend, all others in a hidden table, and
// the slider over the plot, which arrow keys move, announces each point in time.
import { useState, type PointerEvent } from 'react';
import { useText } from '../i18n';
import {
  area,
  axis,
  extent,
  indexAt,
  latest,
  line,
  plot,
  timeOf,
  timeTicks,
  type Series,
  type Unit,
} from '../lib/chart';
import { formatSample } from '../lib/sample';
import { useWidth } from './width';

export interface Line {
  label: string;
  series: Series;
  /** A limit is drawn differently, and the area under the first line is filled. */
  limit?: boolean;
}

interface Props {
  title: string;
  lines: Line[];
  from: string;
  stepSeconds: number;
}

const height = 168;
const margin = { left: 72, right: 8, top: 8, bottom: 22 }; // px: space for the axes' labels

const clock = (at: string, seconds: boolean) => at.slice(11, seconds ? 19 : 16);

export function Chart({ title, lines, from, stepSeconds }: Props) {
  const { t, language } = useText();
  const { ref, width } = useWidth();
  const [chosen, choose] = useState<number | null>(null);
  const unit: Unit = lines[0]?.series.unit ?? 'percent';
  const count = Math.max(0, ...lines.map((l) => l.series.values.length));
  const say = (v: number | null | undefined) =>
    v === null || v === undefined ? t('chart.gap') : formatSample(v, unit, language);
  const box = {
    left: margin.left,
    top: margin.top,
    width: width - margin.left - margin.right,
    height: height - margin.top - margin.bottom,
  };
  const ticks = axis(
    lines.map((l) => l.series.values),
    unit,
  );
  const p = plot(count, ticks.at(-1) ?? 1, box);
  const index = chosen === null ? null : Math.min(chosen, count - 1);
  const at = (i: number) => clock(timeOf(from, stepSeconds, i), stepSeconds < 60);
  const reading = (i: number) =>
    `${at(i)} UTC: ${lines.map((l) => `${l.label} ${say(l.series.values[i])}`).join(', ')}`;
  const point = (e: PointerEvent<HTMLDivElement>) =>
    choose(indexAt(e.clientX - e.currentTarget.getBoundingClientRect().left, count, box));
  return (
    <figure className="basalt-chart" aria-label={title}>
      <figcaption>
        <strong>{title}</strong>
        <ul>
          {lines.map((l, i) => (
            <li key={l.series.name}>
              <svg className="basalt-chart-key" width="20" height="10" aria-hidden="true">
                <path className={l.limit ? 'basalt-limit' : `basalt-line-${i}`} d="M0,5h20" />
              </svg>
              {lines.length > 1 && `${l.label} `}
              <span className="basalt-number" data-series={l.series.name} data-value={latest(l.series.values)}>
                {say(latest(l.series.values))}
              </span>
            </li>
          ))}
        </ul>
      </figcaption>
      <div ref={ref} className="basalt-plot" onPointerMove={point} onPointerLeave={() => choose(null)}>
        <input
          type="range"
          aria-label={t('chart.moment', { title })}
          min={0}
          max={Math.max(0, count - 1)}
          value={index ?? Math.max(0, count - 1)}
          aria-valuetext={count > 0 ? reading(index ?? count - 1) : t('chart.gap')}
          onChange={(e) => choose(Number(e.target.value))}
          onBlur={() => choose(null)}
        />
        <svg width={width} height={height} aria-hidden="true">
          {ticks.map((v) => (
            <g key={v}>
              <line className="basalt-grid" x1={box.left} x2={box.left + box.width} y1={p.y(v)} y2={p.y(v)} />
              <text className="basalt-tick" x={box.left - 6} y={p.y(v)} dy="0.32em" textAnchor="end">
                {formatSample(v, unit, language)}
              </text>
            </g>
          ))}
          {timeTicks(from, stepSeconds, count, Math.max(2, Math.floor(box.width / 90)))
            .filter((i) => p.x(i) > box.left + 14 && p.x(i) < box.left + box.width - 14)
            .map((i) => (
              <text key={i} className="basalt-tick" x={p.x(i)} y={height - 5} textAnchor="middle">
                {clock(timeOf(from, stepSeconds, i), false)}
              </text>
            ))}
          {lines.map((l, i) => (
            <g key={l.series.name}>
              {i === 0 && <path className="basalt-area" d={area(l.series.values, p)} />}
              <path className={l.limit ? 'basalt-limit' : `basalt-line-${i}`} d={line(l.series.values, p)} />
            </g>
          ))}
          {index !== null && count > 0 && (
            <line className="basalt-moment" x1={p.x(index)} x2={p.x(index)} y1={box.top} y2={box.top + box.height} />
          )}
        </svg>
      </div>
      <p className="basalt-note basalt-chart-reading" aria-hidden="true">
        {index !== null && count > 0 ? reading(index) : ''}
      </p>
      <table className="basalt-hidden">
        <caption>{title}</caption>
        <thead>
          <tr>
            <th scope="col">{t('chart.line')}</th>
            <th scope="col">{t('chart.low')}</th>
            <th scope="col">{t('chart.mean')}</th>
            <th scope="col">{t('chart.high')}</th>
          </tr>
        </thead>
        <tbody>
          {lines.map((l) => {
            const e = extent(l.series.values);
            return (
              <tr key={l.series.name}>
                <th scope="row">{l.label}</th>
                <td>{say(e?.low)}</td>
                <td>{say(e?.mean)}</td>
                <td>{say(e?.high)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </figure>
  );
}
