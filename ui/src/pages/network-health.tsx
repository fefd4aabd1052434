// External connectivity for operators: external networks, the routers that use them, and the state of networking on
// each node.
import { Title } from '@patternfly/react-core';
import { NetworkIcon, RouteIcon, ServerIcon } from '@patternfly/react-icons';
import { Button } from '@patternfly/react-core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { api, ok, type Schemas } from '../api/client';
import { useExternalNetworks } from '../api/cluster';
import { useNodes } from '../api/queries';
import { useText } from '../i18n';
import { told, type Told } from '../lib/cause';
import { nameIn } from '../lib/named';
import type { Node } from '../lib/node';
import { whyOf } from '../lib/state';
import { Empty, ObjectList, useProjectListing, type Column } from '../parts/list';
import { PageBody } from '../parts/page';
import { useRemoval } from '../parts/removal';
import { Note } from '../parts/told';
import { ToneLabel } from '../parts/tone';
import { useProject } from '../parts/project';
import { ExternalForm } from './external-form';
import { collections } from '../api/collection';
import { useMadeStates } from '../parts/facets';

type External = Schemas['ExternalNetwork'];
type Router = Schemas['Router'];

function Phase({ phase, note }: { phase?: 'Pending' | 'Ready' | 'Failed'; note: Told }) {
  const { t } = useText();
  return (
    <div>
      <ToneLabel
        tone={phase === 'Ready' ? 'good' : phase === 'Failed' ? 'bad' : 'busy'}
        text={t(`xnet.${phase || 'Pending'}`)}
      />{' '}
      <Note of={note} />
    </div>
  );
}

/** Chassis shows whether networking works on a node, and the reason if not, as the node reports it. */
function Chassis({ node: { status: s } }: { node: Node }) {
  const { t } = useText();
  const said = s?.conditions?.find((c) => c.type === 'Network');
  if (!said) return <ToneLabel tone="off" text={t('xnet.none')} />;
  return (
    <div>
      {said.status ? (
        <ToneLabel tone="good" text={t('xnet.works')} />
      ) : (
        <ToneLabel tone="bad" text={t('xnet.broken')} />
      )}{' '}
      <span className="basalt-note">{!said.status && said.message}</span>
    </div>
  );
}

export function NetworkHealth() {
  const { t } = useText();
  const client = useQueryClient();
  const { projects } = useProject();
  const external = useExternalNetworks();
  const routers = useProjectListing(collections.routers, { prefix: 'routers.', sort: 'id', facets: useMadeStates() });
  const nodes = useNodes({ limit: 1000 });
  const [editing, edit] = useState<External | 'new' | null>(null);
  const again = () => client.invalidateQueries({ queryKey: ['ExternalNetwork', 'list'] });
  const removal = useRemoval<External>({
    remove: (n) => ok(api.DELETE('/v1/external-networks/{id}', { params: { path: { id: n.meta.id ?? '' } } })),
    title: (name) => t('one.deleteTitle', { name }),
    help: t('xnet.deleteHelp'),
  });
  const create = <Button onClick={() => edit('new')}>{t('xnet.create')}</Button>;
  const outside: Column<External>[] = [
    {
      id: 'name',
      title: t('common.name'),
      cell: (n) => (
        <>
          {n.meta.name} {n.spec.default && <span className="basalt-note">{t('xnet.default')}</span>}
        </>
      ),
    },
    {
      id: 'state',
      title: t('common.state'),
      cell: ({ status: s }) => <Phase phase={s?.phase} note={told(s?.lastError, s?.cause)} />,
    },
    {
      id: 'cable',
      title: t('xnet.cable'),
      cell: ({ spec: s }) => [s.physicalNetwork || 'external', s.vlan && `VLAN ${s.vlan}`].filter(Boolean).join(', '),
    },
    { id: 'cidr', title: t('xnet.cidr'), cell: ({ spec: s }) => [s.cidr4, s.cidr6].filter(Boolean).join(', ') || '–' },
    {
      id: 'ranges',
      title: t('xnet.ranges'),
      cell: ({ spec: s }) => [...(s.ranges4 ?? []), ...(s.ranges6 ?? [])].join(', ') || '–',
    },
    {
      id: 'actions',
      control: true,
      title: t('common.actions'),
      cell: (n) => (
        <div className="basalt-actions">
          <Button variant="link" isInline aria-label={`${t('op.change')}: ${n.meta.name}`} onClick={() => edit(n)}>
            {t('op.change')}
          </Button>
          <Button
            variant="link"
            isInline
            isDanger
            aria-label={`${t('common.delete')}: ${n.meta.name}`}
            onClick={() => removal.ask(n)}
          >
            {t('common.delete')}
          </Button>
        </div>
      ),
    },
  ];
  const ways: Column<Router>[] = [
    { id: 'project', sort: 'project', title: t('common.project'), cell: (r) => nameIn(projects, r.meta.project) },
    {
      id: 'state',
      sort: 'state',
      title: t('common.state'),
      cell: (r) => <Phase phase={r.status?.phase} note={whyOf(r)} />,
    },
    {
      id: 'out',
      sort: 'spec.externalNetwork',
      title: t('xnet.out'),
      cell: (r) => nameIn(external.data?.items, r.spec.externalNetwork),
    },
    {
      id: 'seenAs',
      title: t('xnet.seenAs'),
      cell: ({ assignment: a }) => [a?.address4, a?.address6].filter(Boolean).join(', ') || '–',
    },
    {
      id: 'node',
      title: t('one.node'),
      cell: ({ status: s }) =>
        s?.node ? <Link href={`/nodes/${s.node}`}>{nameIn(nodes.data?.items, s.node)}</Link> : '–',
    },
  ];
  const chassis: Column<Node>[] = [
    { id: 'name', title: t('common.name'), cell: (n) => <Link href={`/nodes/${n.meta.id}`}>{n.meta.name}</Link> },
    { id: 'state', title: t('common.state'), cell: (n) => <Chassis node={n} /> },
  ];
  return (
    <PageBody title={t('xnet.title')}>
      <div className="basalt-stack">
        <div className="basalt-header">
          <Title headingLevel="h2" size="lg">
            {t('xnet.external')}
          </Title>
          {(external.data?.items.length ?? 0) > 0 && create}
        </div>
        <ObjectList
          label={t('xnet.external')}
          columns={outside}
          name="external-networks"
          query={external}
          bulk={[removal.bulk()]}
          keyOf={(n) => n.meta.id ?? n.meta.name}
          empty={<Empty title={t('xnet.empty')} help={t('xnet.emptyHelp')} icon={NetworkIcon} action={create} />}
        />
        <Title headingLevel="h2" size="lg">
          {t('xnet.chassis')}
        </Title>
        <ObjectList
          label={t('xnet.chassis')}
          columns={chassis}
          query={nodes}
          keyOf={(n) => n.meta.id ?? n.meta.name}
          empty={<Empty title={t('node.empty')} help={t('node.emptyHelp')} icon={ServerIcon} />}
        />
        <Title headingLevel="h2" size="lg">
          {t('xnet.routers')}
        </Title>
        <ObjectList
          label={t('xnet.routers')}
          columns={ways}
          name="routers"
          list={routers}
          keyOf={(r) => r.meta.id ?? r.meta.name}
          empty={<Empty title={t('xnet.noRouters')} help={t('xnet.noRoutersHelp')} icon={RouteIcon} />}
        />
      </div>
      {editing && (
        <ExternalForm
          network={editing === 'new' ? undefined : editing}
          onDone={() => (edit(null), void again())}
          onClose={() => edit(null)}
        />
      )}
      {removal.dialog}
    </PageBody>
  );
}
