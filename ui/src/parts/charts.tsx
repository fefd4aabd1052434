// The charts of an instance, a node or a GPU: those that have data.
import { ToggleGroup, ToggleGroupItem } from '@patternfly/react-core';
import { ChartLineIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import { useSamples, type Measured, type Range } from '../api/samples';
import { useText, type Key } from '../i18n';
import { ranges } from '../lib/chart';
import { Chart } from './chart';
import { ErrorAlert } from './error';
import { Empty } from './list';

const charts: { title: Key; lines: { name: string; label: Key; limit?: boolean }[] }[] = [
  { title: 'chart.gpu', lines: [{ name: 'gpu', label: 'chart.gpu' }] },
  {
    title: 'chart.vram',
    lines: [
      { name: 'vram', label: 'chart.resident' },
      { name: 'vram-limit', label: 'chart.limit', limit: true },
    ],
  },
  { title: 'chart.cpu', lines: [{ name: 'cpu', label: 'chart.cpu' }] },
  {
    title: 'chart.memory',
    lines: [
      { name: 'memory', label: 'chart.used' },
      { name: 'memory-limit', label: 'chart.limit', limit: true },
    ],
  },
  {
    title: 'chart.disk',
    lines: [
      { name: 'disk-read', label: 'chart.read' },
      { name: 'disk-write', label: 'chart.written' },
    ],
  },
  {
    title: 'chart.requests',
    lines: [
      { name: 'disk-reads', label: 'chart.read' },
      { name: 'disk-writes', label: 'chart.written' },
    ],
  },
  {
    title: 'chart.network',
    lines: [
      { name: 'network-received', label: 'chart.received' },
      { name: 'network-sent', label: 'chart.sent' },
    ],
  },
];

export function Charts({ of, id, label }: { of: Measured; id: string; label: string }) {
  const { t } = useText();
  const [range, choose] = useState<Range>(ranges[0]!);
  const { data, error, refetch } = useSamples(of, id, range);
  const shown = charts
    .map((c) => ({
      ...c,
      lines: c.lines.flatMap(({ name, label, limit }) =>
        (data?.series ?? []).filter((s) => s.name === name).map((series) => ({ label: t(label), series, limit })),
      ),
    }))
    .filter((c) => c.lines.length > 0);
  return (
    <section className="basalt-stack" aria-label={label}>
      <ToggleGroup aria-label={t('chart.range')}>
        {ranges.map((r) => (
          <ToggleGroupItem
            key={r.name}
            buttonId={`range-${of}-${id}-${r.name}`}
            text={t(`chart.${r.name}`)}
            isSelected={range.name === r.name}
            onChange={() => choose(r)}
          />
        ))}
      </ToggleGroup>
      {/* If the node does not respond, this shows the error instead of old lines. */}
      <ErrorAlert error={error} onRetry={() => void refetch()} />
      {!error && data && shown.length === 0 && (
        <Empty title={t('chart.none')} help={t('chart.noneHelp')} icon={ChartLineIcon} />
      )}
      {!error && data && (
        <div className="basalt-columns">
          {shown.map((c) => (
            <Chart key={c.title} title={t(c.title)} lines={c.lines} from={data.from} stepSeconds={data.stepSeconds} />
          ))}
        </div>
      )}
    </section>
  );
}
