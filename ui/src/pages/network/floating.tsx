import { Button, FormSelect, FormSelectOption, TextInput } from '@patternfly/react-core';
import { GlobeIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import type { Instance } from '../../api/client';
import {
  createFloatingIP,
  pointed,
  pointFloatingIP,
  removeFloatingIP,
  useExternalNetworks,
  useNetworkPage,
  type FloatingIP,
  type Network,
} from '../../api/network';
import { useInstances } from '../../api/queries';
import { floatingIPs } from '../../api/resource';
import { may, type Session } from '../../api/session';
import { mostChoices } from '../../api/storage';
import { useText } from '../../i18n';
import { floatingCommand } from '../../lib/commands';
import { stateOf, whyOf } from '../../lib/state';
import { asCommand, asCurl, changeAsCurl } from '../../lib/shell';
import { Confirm } from '../../parts/confirm';
import { Field } from '../../parts/field';
import { FormDialog } from '../../parts/form-dialog';
import { Empty, ObjectList, useProjectListing, type Column } from '../../parts/list';
import { PageBody } from '../../parts/page';
import { ProjectField, useNewIn } from '../../parts/project-field';
import { useRemoval } from '../../parts/removal';
import { Same } from '../../parts/same';
import { StateLabel } from '../../parts/state';
import { useProject } from '../../parts/project';
import { collections } from '../../api/collection';
import { useMadeStates } from '../../parts/facets';

/** A port that can be reached from outside: an instance and one of its networks. */
interface Port {
  value: string;
  label: string;
}

function usePorts(project: string): Port[] {
  const instances = useInstances({ project, limit: mostChoices }).data?.items ?? [];
  const networks = useNetworkPage({ project, limit: mostChoices }).data?.items ?? [];
  const open = new Map<string, Network>(
    networks.filter((n) => !n.spec.isolated && n.spec.cidr4).map((n) => [n.meta.id ?? '', n]),
  );
  const portsOf = (i: Instance) =>
    (i.spec.networks ?? [])
      .filter((n) => open.has(n.network))
      .map((n) => ({ value: `${i.meta.id} ${n.network}`, label: `${i.meta.name}, ${open.get(n.network)?.meta.name}` }));
  return instances.filter((i) => !i.meta.deletedAt).flatMap(portsOf);
}

function PortField({
  ports,
  value,
  set,
  optional,
}: {
  ports: Port[];
  value: string;
  set: (v: string) => void;
  optional?: boolean;
}) {
  const { t } = useText();
  return (
    <Field
      id="fip-port"
      label={t('fip.port')}
      help={ports.length === 0 ? t('fip.noPort') : undefined}
      path="spec.network"
    >
      <FormSelect id="fip-port" value={value} onChange={(_, v) => set(v)}>
        {optional && <FormSelectOption value="" label={t('vol.later')} />}
        {ports.map((p) => (
          <FormSelectOption key={p.value} value={p.value} label={p.label} />
        ))}
      </FormSelect>
    </Field>
  );
}

/** PointSame shows how to attach a floating IP to a port, as a command and as curl. */
export function PointSame({ ip, instance, network }: { ip: FloatingIP; instance: string; network: string }) {
  return (
    <Same
      cli={asCommand(['floating-ip', 'set', ip.meta.name], { instance, network })}
      curl={changeAsCurl(floatingIPs, ip, pointed(ip, instance, network))}
    />
  );
}

export function AttachFloatingIP({ ip, onClose }: { ip: FloatingIP; onClose: () => void }) {
  const { t } = useText();
  const client = useQueryClient();
  const ports = usePorts(ip.meta.project ?? '');
  const [chosen, choose] = useState('');
  const port = chosen || ports[0]?.value || '';
  const send = useMutation({
    mutationFn: () => pointFloatingIP(ip.meta.id ?? '', ...(port.split(' ') as [string, string])),
    onSuccess: () => (onClose(), client.invalidateQueries({ queryKey: ['FloatingIP', 'list'] })),
  });
  return (
    <FormDialog
      title={t('fip.attachTitle', { name: ip.assignment?.address ?? ip.meta.name })}
      action={t('fip.attach')}
      busy={send.isPending}
      disabled={!port}
      error={send.error}
      body={{ spec: { instance: port.split(' ')[0], network: port.split(' ')[1] } }}
      onSubmit={send.mutate}
      onClose={onClose}
    >
      <PortField ports={ports} value={port} set={choose} />
      {port && <PointSame ip={ip} instance={port.split(' ')[0] ?? ''} network={port.split(' ')[1] ?? ''} />}
    </FormDialog>
  );
}

export function FreeFloatingIP({ ip, onClose }: { ip: FloatingIP; onClose: () => void }) {
  const { t } = useText();
  const client = useQueryClient();
  const send = useMutation({
    mutationFn: () => pointFloatingIP(ip.meta.id ?? ''),
    onSuccess: () => (onClose(), client.invalidateQueries({ queryKey: ['FloatingIP', 'list'] })),
  });
  return (
    <Confirm
      title={t('fip.freeTitle', { name: ip.assignment?.address ?? ip.meta.name })}
      help={t('fip.freeHelp')}
      action={t('fip.free')}
      busy={send.isPending}
      error={send.error}
      onConfirm={send.mutate}
      onClose={onClose}
    />
  );
}

/** CreateFloatingIP allocates an address, for one port if it is given. */
export function CreateFloatingIP({
  project,
  port: given,
  onClose,
}: {
  project?: string;
  port?: string;
  onClose: () => void;
}) {
  const { t } = useText();
  const client = useQueryClient();
  const place = useNewIn(project);
  const ports = usePorts(place.id);
  const outside = useExternalNetworks().data?.items ?? [];
  const [form, setForm] = useState({ name: '', from: '', port: given ?? '' });
  const ip = (in_: string): FloatingIP => {
    const [instance, network] = form.port.split(' ');
    return {
      kind: 'FloatingIP',
      meta: { name: form.name.trim(), project: in_ },
      spec: { ...(form.from && { externalNetwork: form.from }), ...(instance && { instance, network }) },
    };
  };
  const create = useMutation({
    mutationFn: () => createFloatingIP(ip(place.id)),
    onSuccess: () => (onClose(), client.invalidateQueries({ queryKey: ['FloatingIP', 'list'] })),
  });
  return (
    <FormDialog
      title={t('fip.create')}
      action={t('fip.create')}
      busy={create.isPending}
      error={create.error}
      schema="FloatingIP"
      body={ip(place.id)}
      onSubmit={create.mutate}
      onClose={onClose}
    >
      {!project && <ProjectField of={place} />}
      <Field id="fip-name" label={t('common.name')} help={t('new.nameHelp')} path="meta.name" required>
        <TextInput
          id="fip-name"
          value={form.name}
          onChange={(_, name) => setForm((f) => ({ ...f, name }))}
          isRequired
          autoComplete="off"
          spellCheck={false}
        />
      </Field>
      {outside.length > 1 && (
        <Field id="fip-from" label={t('fip.from')} path="spec.externalNetwork">
          <FormSelect id="fip-from" value={form.from} onChange={(_, from) => setForm((f) => ({ ...f, from }))}>
            <FormSelectOption value="" label={t('fip.default')} />
            {outside.map((n) => (
              <FormSelectOption key={n.meta.id} value={n.meta.name} label={`${n.meta.name} ${n.spec.cidr4 ?? ''}`} />
            ))}
          </FormSelect>
        </Field>
      )}
      {!given && (
        <PortField ports={ports} value={form.port} set={(port) => setForm((f) => ({ ...f, port }))} optional />
      )}
      <Same cli={floatingCommand(ip(place.name))} curl={asCurl('POST', '/v1/floating-ips', ip(place.name))} />
    </FormDialog>
  );
}

export function FloatingIPs({ session }: { session: Session }) {
  const { t } = useText();
  const { project, projects } = useProject();
  const list = useProjectListing(collections.floatingIPs, { facets: useMadeStates() });
  const instances = useInstances({ project, limit: mostChoices }).data?.items ?? [];
  const [doing, setDoing] = useState<{ what: 'attach' | 'free'; ip: FloatingIP } | null>(null);
  const [creating, setCreating] = useState(false);
  const removal = useRemoval<FloatingIP>({
    remove: removeFloatingIP,
    title: (name) => t('fip.releaseTitle', { name }),
    help: t('fip.releaseHelp'),
    action: t('fip.release'),
  });
  const member = may(session, 'member');
  const create = member && <Button onClick={() => setCreating(true)}>{t('fip.create')}</Button>;
  const actions = (ip: FloatingIP) =>
    member && !ip.meta.deletedAt
      ? [
          ip.spec.instance
            ? { text: t('fip.free'), run: () => setDoing({ what: 'free' as const, ip }) }
            : { text: t('fip.attach'), run: () => setDoing({ what: 'attach' as const, ip }) },
          { text: t('fip.release'), danger: true, run: () => removal.ask(ip) },
        ]
      : [];
  const columns: Column<FloatingIP>[] = [
    {
      id: 'address',
      sort: 'assignment.address',
      title: t('fip.address'),
      cell: (f) => <strong>{f.assignment?.address || '–'}</strong>,
    },
    { id: 'name', sort: 'name', title: t('common.name'), cell: (f) => f.meta.name },
    {
      id: 'state',
      sort: 'state',
      title: t('common.state'),
      value: (f) => stateOf(f),
      cell: (f) => <StateLabel state={stateOf(f)} note={whyOf(f)} />,
    },
    {
      id: 'reaches',
      sort: 'spec.instance',
      title: t('fip.reaches'),
      cell: ({ spec: { instance } }) =>
        instance ? (
          <Link href={`/instances/${instance}/network`}>
            {instances.find((i) => i.meta.id === instance)?.meta.name ?? instance}
          </Link>
        ) : (
          t('fip.nothing')
        ),
    },
    ...(project
      ? []
      : [
          {
            id: 'project',
            sort: 'project',
            title: t('common.project'),
            cell: (f: FloatingIP) => projects.find((p) => p.meta.id === f.meta.project)?.meta.name ?? '',
          },
        ]),
  ];
  const close = () => setDoing(null);
  return (
    <PageBody title={t('fip.title')} actions={create}>
      <ObjectList
        name="floating-ips"
        label={t('fip.title')}
        columns={columns}
        list={list}
        actions={actions}
        bulk={member ? [removal.bulk((f) => !f.meta.deletedAt)] : undefined}
        keyOf={(f) => f.meta.id ?? f.meta.name}
        empty={
          <Empty
            title={t('fip.empty')}
            help={create ? t('fip.emptyHelp') : t('fip.emptyViewer')}
            icon={GlobeIcon}
            action={create}
          />
        }
      />
      {creating && <CreateFloatingIP onClose={() => setCreating(false)} />}
      {doing?.what === 'attach' && <AttachFloatingIP ip={doing.ip} onClose={close} />}
      {doing?.what === 'free' && <FreeFloatingIP ip={doing.ip} onClose={close} />}
      {removal.dialog}
    </PageBody>
  );
}
