import { Button, TextInput } from '@patternfly/react-core';
import { NetworkIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { createNetwork, removeNetwork, type Network } from '../../api/network';
import { may, type Session } from '../../api/session';
import { useText } from '../../i18n';
import { networkCommand } from '../../lib/commands';
import { stateOf, whyOf } from '../../lib/state';
import { asCurl } from '../../lib/shell';
import { CheckField } from '../../parts/check-field';
import { Field } from '../../parts/field';
import { FormDialog } from '../../parts/form-dialog';
import { Empty, ObjectList, useProjectListing, type Column } from '../../parts/list';
import { PageBody } from '../../parts/page';
import { ProjectField, useNewIn } from '../../parts/project-field';
import { useRemoval } from '../../parts/removal';
import { Same } from '../../parts/same';
import { StateLabel } from '../../parts/state';
import { useProject } from '../../parts/project';
import { Trace } from './trace';
import { collections } from '../../api/collection';
import { useMadeStates } from '../../parts/facets';

function CreateNetwork({ onClose }: { onClose: () => void }) {
  const { t } = useText();
  const client = useQueryClient();
  const place = useNewIn();
  const [form, setForm] = useState({ name: '', cidr4: '', cidr6: '', dns: '', isolated: false });
  const set = (name: 'name' | 'cidr4' | 'cidr6' | 'dns') => (_: unknown, v: string) =>
    setForm((f) => ({ ...f, [name]: v }));
  const dnsServers = form.dns.split(/[\s,]+/).filter(Boolean);
  const network = (project: string): Network => ({
    kind: 'Network',
    meta: { name: form.name.trim(), project },
    spec: {
      ...(form.cidr4.trim() && { cidr4: form.cidr4.trim() }),
      ...(form.cidr6.trim() && { cidr6: form.cidr6.trim() }),
      ...(dnsServers.length > 0 && { dnsServers }),
      ...(form.isolated && { isolated: true }),
    },
  });
  const create = useMutation({
    mutationFn: () => createNetwork(network(place.id)),
    onSuccess: () => (onClose(), client.invalidateQueries({ queryKey: ['Network', 'list'] })),
  });
  const readable = network(place.name);
  return (
    <FormDialog
      title={t('net.create')}
      help={t('net.fixed')}
      action={t('common.create')}
      busy={create.isPending}
      error={create.error}
      schema="Network"
      body={network(place.id)}
      onSubmit={create.mutate}
      onClose={onClose}
      wide
    >
      <ProjectField of={place} />
      <Field id="net-name" label={t('common.name')} help={t('new.nameHelp')} path="meta.name" required>
        <TextInput
          id="net-name"
          value={form.name}
          onChange={set('name')}
          isRequired
          autoComplete="off"
          spellCheck={false}
        />
      </Field>
      <Field id="net-cidr4" label={t('net.cidr4')} help={t('net.cidr4Help')} path="spec.cidr4">
        <TextInput id="net-cidr4" value={form.cidr4} onChange={set('cidr4')} autoComplete="off" spellCheck={false} />
      </Field>
      <Field id="net-cidr6" label={t('net.cidr6')} help={t('net.cidr6Help')} path="spec.cidr6">
        <TextInput id="net-cidr6" value={form.cidr6} onChange={set('cidr6')} autoComplete="off" spellCheck={false} />
      </Field>
      <Field id="net-dns" label={t('net.dns')} help={t('net.dnsHelp')} path="spec.dnsServers">
        <TextInput id="net-dns" value={form.dns} onChange={set('dns')} autoComplete="off" spellCheck={false} />
      </Field>
      <CheckField
        id="net-isolated"
        label={t('net.wantIsolated')}
        path="spec.isolated"
        checked={form.isolated}
        onChange={(isolated) => setForm((f) => ({ ...f, isolated }))}
      />
      <Same cli={networkCommand(readable)} curl={asCurl('POST', '/v1/networks', readable)} />
    </FormDialog>
  );
}

export function Networks({ session }: { session: Session }) {
  const { t } = useText();
  const { project, projects } = useProject();
  const [creating, setCreating] = useState(false);
  const list = useProjectListing(collections.networks, { facets: useMadeStates() });
  const removal = useRemoval<Network>({
    remove: removeNetwork,
    title: (n) => t('net.deleteTitle', { name: n }),
    help: t('net.deleteHelp'),
  });
  const member = may(session, 'member');
  const create = member && <Button onClick={() => setCreating(true)}>{t('net.create')}</Button>;
  const actions = (n: Network) =>
    member && !n.meta.deletedAt ? [{ text: t('common.delete'), danger: true, run: () => removal.ask(n) }] : [];
  const columns: Column<Network>[] = [
    { id: 'name', sort: 'name', title: t('common.name'), cell: (n) => n.meta.name },
    {
      id: 'state',
      sort: 'state',
      title: t('common.state'),
      value: (n) => stateOf(n),
      cell: (n) => <StateLabel state={stateOf(n)} note={whyOf(n)} />,
    },
    { id: 'ipv4', sort: 'spec.cidr4', title: t('net.ipv4'), cell: (n) => n.spec.cidr4 || '–' },
    { id: 'ipv6', sort: 'spec.cidr6', title: t('net.ipv6'), cell: (n) => n.spec.cidr6 || '–' },
    {
      id: 'out',
      sort: 'spec.isolated',
      title: t('net.out'),
      cell: (n) => t(n.spec.isolated ? 'net.isolated' : 'net.router'),
    },
    ...(project
      ? []
      : [
          {
            id: 'project',
            sort: 'project',
            title: t('common.project'),
            cell: (n: Network) => projects.find((p) => p.meta.id === n.meta.project)?.meta.name ?? '',
          },
        ]),
  ];
  return (
    <PageBody title={t('net.title')} actions={create}>
      <div className="basalt-stack">
        <ObjectList
          name="networks"
          label={t('net.title')}
          columns={columns}
          list={list}
          actions={actions}
          bulk={member ? [removal.bulk((n) => !n.meta.deletedAt)] : undefined}
          keyOf={(n) => n.meta.id ?? n.meta.name}
          empty={
            <Empty
              title={t('net.empty')}
              help={create ? t('net.emptyHelp') : t('net.emptyViewer')}
              icon={NetworkIcon}
              action={create}
            />
          }
        />
        <Trace project={project || undefined} />
      </div>
      {creating && <CreateNetwork onClose={() => setCreating(false)} />}
      {removal.dialog}
    </PageBody>
  );
}
