// All nodes with their GPUs, coloured by the chosen figure. Each cell also shows the number, so that colour is not
// the only sign; arrow keys move between cells.
import { Card, CardBody, CardFooter, CardHeader, CardTitle } from '@patternfly/react-core';
import { useState, type KeyboardEvent, type ReactNode } from 'react';
import { Link } from 'wouter';
import { useText } from '../../i18n';
import { stepOf, type Heat } from '../../lib/heat';
import { nodeState, type Node } from '../../lib/node';
import type { CardFigures } from '../../lib/pool';
import { ErrorAlert } from '../../parts/error';
import { HeatScale, HeatToggle, useHeat } from '../../parts/heat';

/** move moves the focus among the links of a map. */
function move(e: KeyboardEvent<HTMLElement>) {
  const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
  if (!by) return;
  const links = [...e.currentTarget.querySelectorAll<HTMLElement>('a[data-gpu]')];
  const next = links[links.indexOf(e.target as HTMLElement) + by];
  if (!next) return;
  e.preventDefault();
  next.focus();
}

function Cell({ card: c, by, first }: { card: CardFigures; by: Heat; first: boolean }) {
  const { level, shown, failed, label } = useHeat(by)(c);
  return (
    <Link
      href={`/nodes/${c.gpu.status?.node ?? ''}`}
      className={`basalt-heat basalt-heat-${stepOf(level)}`}
      data-gpu={c.gpu.meta.id}
      tabIndex={first ? 0 : -1}
      aria-label={label}
      title={label}
    >
      {failed ? '!' : shown}
    </Link>
  );
}

interface Props {
  nodes: Node[];
  cards: CardFigures[];
  error: unknown;
  /** Links to pages that show more. */
  children?: ReactNode;
}

export function GpuMap({ nodes, cards, error, children }: Props) {
  const { t } = useText();
  const [by, choose] = useState<Heat>('allocated');
  const first = nodes.flatMap((n) => cards.filter((c) => c.gpu.status?.node === n.meta.id))[0];
  return (
    <Card>
      <CardHeader
        actions={{
          hasNoOffset: true,
          actions: <HeatToggle by={by} choose={choose} />,
        }}
      >
        <CardTitle component="h2">{t('map.title')}</CardTitle>
      </CardHeader>
      <CardBody className="basalt-stack">
        <ErrorAlert error={error} />
        {/* eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- its links take the keys */}
        <ul className="basalt-map" onKeyDown={move}>
          {nodes.map((n) => {
            const here = cards.filter((c) => c.gpu.status?.node === n.meta.id);
            const state = nodeState(n);
            return (
              <li key={n.meta.id}>
                <span className="basalt-map-node">
                  <Link href={`/nodes/${n.meta.id}`}>{n.meta.name}</Link>
                  {state !== 'Ready' && <span className="basalt-note"> {t(`node.${state}`)}</span>}
                </span>
                <span className="basalt-map-gpus">
                  {here.length === 0 && <span className="basalt-note">{t('map.noGpus')}</span>}
                  {here.map((c) => (
                    <Cell key={c.gpu.meta.id} card={c} by={by} first={c === first} />
                  ))}
                </span>
              </li>
            );
          })}
        </ul>
        <HeatScale by={by} />
      </CardBody>
      {children && <CardFooter className="basalt-actions">{children}</CardFooter>}
    </Card>
  );
}
