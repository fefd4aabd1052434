import { Button } from '@patternfly/react-core';
import { BalanceScaleIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import { removeBalancer, useFloatingIPs, useNetworkPage, type LoadBalancer } from '../../api/network';
import { may, type Session } from '../../api/session';
import { mostChoices } from '../../api/storage';
import { useText } from '../../i18n';
import { stateOf, whyOf } from '../../lib/state';
import { Empty, ObjectList, useProjectListing, type Column } from '../../parts/list';
import { PageBody } from '../../parts/page';
import { useRemoval } from '../../parts/removal';
import { StateLabel } from '../../parts/state';
import { useProject } from '../../parts/project';
import { CreateBalancer, EditBalancer } from './balancer-form';
import { collections } from '../../api/collection';
import { useMadeStates } from '../../parts/facets';

export function Balancers({ session }: { session: Session }) {
  const { t } = useText();
  const { project, projects } = useProject();
  const list = useProjectListing(collections.loadBalancers, { facets: useMadeStates() });
  const networks = useNetworkPage({ project, limit: mostChoices });
  const ips = useFloatingIPs({ project, limit: mostChoices }).data?.items ?? [];
  const [creating, setCreating] = useState(false);
  const [editing, edit] = useState<LoadBalancer | null>(null);
  const removal = useRemoval<LoadBalancer>({
    remove: removeBalancer,
    title: (name) => t('lb.deleteTitle', { name }),
    help: t('lb.deleteHelp'),
  });
  const member = may(session, 'member');
  const possible = networks.data?.items.some((n) => n.spec.cidr4);
  const create = member && possible && <Button onClick={() => setCreating(true)}>{t('lb.create')}</Button>;
  const outside = (l: LoadBalancer) => ips.find((f) => f.meta.id === l.spec.floatingIP)?.assignment?.address;
  const actions = (l: LoadBalancer) =>
    member && !l.meta.deletedAt
      ? [
          { text: t('lb.edit'), run: () => edit(l) },
          { text: t('common.delete'), danger: true, run: () => removal.ask(l) },
        ]
      : [];
  const columns: Column<LoadBalancer>[] = [
    { id: 'name', sort: 'name', title: t('common.name'), cell: (l) => l.meta.name },
    {
      id: 'state',
      sort: 'state',
      title: t('common.state'),
      value: (l) => stateOf(l),
      cell: (l) => <StateLabel state={stateOf(l)} note={whyOf(l)} />,
    },
    {
      id: 'address',
      title: t('fip.address'),
      cell: (l) => [l.assignment?.address, outside(l)].filter(Boolean).join(', ') || '–',
    },
    { id: 'listens', sort: 'spec.port', title: t('lb.listens'), cell: (l) => `${l.spec.protocol}/${l.spec.port}` },
    {
      id: 'backends',
      title: t('lb.backends'),
      cell: ({ spec, status }) =>
        spec.health
          ? t('lb.up', { up: status?.backendsUp ?? 0, all: spec.backends?.length ?? 0 })
          : String(spec.backends?.length ?? 0),
    },
    {
      id: 'network',
      sort: 'spec.network',
      title: t('lb.network'),
      cell: (l) => networks.data?.items.find((n) => n.meta.id === l.spec.network)?.meta.name ?? l.spec.network,
    },
    ...(project
      ? []
      : [
          {
            id: 'project',
            sort: 'project',
            title: t('common.project'),
            cell: (l: LoadBalancer) => projects.find((p) => p.meta.id === l.meta.project)?.meta.name ?? '',
          },
        ]),
  ];
  return (
    <PageBody title={t('lb.title')} actions={create}>
      <ObjectList
        name="load-balancers"
        label={t('lb.title')}
        columns={columns}
        list={list}
        actions={actions}
        bulk={member ? [removal.bulk((l) => !l.meta.deletedAt)] : undefined}
        keyOf={(l) => l.meta.id ?? l.meta.name}
        empty={
          <Empty
            title={t('lb.empty')}
            help={!member ? t('lb.emptyViewer') : possible ? t('lb.emptyHelp') : t('lb.needsNetwork')}
            icon={BalanceScaleIcon}
            action={create}
          />
        }
      />
      {editing && <EditBalancer balancer={editing} onClose={() => edit(null)} />}
      {creating && <CreateBalancer onClose={() => setCreating(false)} />}
      {removal.dialog}
    </PageBody>
  );
}
