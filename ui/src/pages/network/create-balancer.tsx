import { Button, Checkbox, FormSelect, FormSelectOption, TextInput } from '@patternfly/react-core';
import { TrashIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useFieldErrors } from '../../api/fields';
import { createBalancer, useFloatingIPs, useNetworkPage, type LoadBalancer } from '../../api/network';
import { useInstances } from '../../api/queries';
import { mostChoices } from '../../api/storage';
import { useText } from '../../i18n';
import { balancerCommand } from '../../lib/commands';
import { asCurl } from '../../lib/shell';
import { Field } from '../../parts/field';
import { FormDialog } from '../../parts/form-dialog';
import { ProjectField, useNewIn } from '../../parts/project-field';
import { Same } from '../../parts/same';

interface Backend {
  key: number;
  instance: string;
  port: string;
}

export function CreateBalancer({ onClose }: { onClose: () => void }) {
  const { t } = useText();
  const client = useQueryClient();
  const place = useNewIn();
  const networks = useNetworkPage({ project: place.id, limit: mostChoices }).data?.items.filter((n) => n.spec.cidr4 && !n.meta.deletedAt) ?? [];
  const ips = useFloatingIPs({ project: place.id, limit: mostChoices }).data?.items.filter((f) => !f.spec.instance && !f.meta.deletedAt) ?? [];
  const instances = useInstances({ project: place.id, limit: mostChoices }).data?.items ?? [];
  const [form, setForm] = useState({ name: '', network: '', protocol: 'tcp' as 'tcp' | 'udp', port: '80', health: true, floatingIP: '' });
  const [backends, setBackends] = useState<Backend[]>([]);
  const [next, setNext] = useState(0);
  const set = (change: Partial<typeof form>) => setForm((f) => ({ ...f, ...change }));
  const network = networks.find((n) => n.meta.id === form.network) ?? networks[0];
  const within = instances.filter((i) => !i.meta.deletedAt && i.spec.networks?.some((n) => n.network === network?.meta.id));
  const setBackend = (key: number, change: Partial<Backend>) => setBackends((all) => all.map((b) => (b.key === key ? { ...b, ...change } : b)));
  /** A balancer in a project, with ids or, to be read, with names. */
  const balancer = (project: string, read?: boolean): LoadBalancer => ({
    kind: 'LoadBalancer',
    meta: { name: form.name.trim(), project },
    spec: {
      network: (read ? network?.meta.name : network?.meta.id) ?? '', protocol: form.protocol, port: Number(form.port),
      backends: backends.map((b) => ({ instance: (read && within.find((i) => i.meta.id === b.instance)?.meta.name) || b.instance, port: Number(b.port) })),
      ...(form.health && { health: true }),
      ...(form.floatingIP && { floatingIP: form.floatingIP }),
    },
  });
  const create = useMutation({ mutationFn: () => createBalancer(balancer(place.id)), onSuccess: () => (onClose(), client.invalidateQueries({ queryKey: ['LoadBalancer', 'list'] })) });
  const errors = useFieldErrors(create.error);
  const shown = ['meta.name', 'meta.project', 'spec.network', 'spec.protocol', 'spec.port', ...(ips.length > 0 ? ['spec.floatingIP'] : []), ...backends.map((_, n) => `spec.backends[${n}]`)];
  const readable = balancer(place.name, true);
  return (
    <FormDialog title={t('lb.create')} action={t('common.create')} busy={create.isPending} error={create.error} shown={shown} onSubmit={create.mutate} onClose={onClose} wide>
      <ProjectField of={place} errors={errors} />
      <Field id="lb-name" label={t('common.name')} help={t('new.nameHelp')} path="meta.name" errors={errors} required>
        <TextInput id="lb-name" value={form.name} onChange={(_, name) => set({ name })} isRequired autoComplete="off" spellCheck={false} />
      </Field>
      <div className="basalt-pair">
        <Field id="lb-network" label={t('lb.network')} path="spec.network" errors={errors}>
          <FormSelect id="lb-network" value={network?.meta.id ?? ''} onChange={(_, v) => (set({ network: v }), setBackends([]))}>
            {networks.map((n) => <FormSelectOption key={n.meta.id} value={n.meta.id} label={`${n.meta.name} ${n.spec.cidr4}`} />)}
          </FormSelect>
        </Field>
        <Field id="lb-protocol" label={t('sg.protocol')} path="spec.protocol" errors={errors}>
          <FormSelect id="lb-protocol" value={form.protocol} onChange={(_, v) => set({ protocol: v as 'tcp' | 'udp' })}>
            {['tcp', 'udp'].map((p) => <FormSelectOption key={p} value={p} label={p} />)}
          </FormSelect>
        </Field>
        <Field id="lb-port" label={t('lb.port')} path="spec.port" errors={errors} required>
          <TextInput id="lb-port" type="number" min={1} max={65535} step={1} isRequired value={form.port} onChange={(_, port) => set({ port })} />
        </Field>
      </div>
      {backends.map((b, n) => (
        <div key={b.key} className="basalt-backend">
          <Field id={`lb-backend-${b.key}`} label={t('lb.backend', { n: n + 1 })} path={`spec.backends[${n}]`} errors={errors}>
            <FormSelect id={`lb-backend-${b.key}`} value={b.instance} onChange={(_, instance) => setBackend(b.key, { instance })}>
              {within.map((i) => <FormSelectOption key={i.meta.id} value={i.meta.id} label={i.meta.name} />)}
            </FormSelect>
          </Field>
          <Field id={`lb-backend-port-${b.key}`} label={t('lb.backendPort', { n: n + 1 })} path={`spec.backends[${n}].port`} errors={errors} required>
            <TextInput id={`lb-backend-port-${b.key}`} type="number" min={1} max={65535} step={1} isRequired value={b.port} onChange={(_, port) => setBackend(b.key, { port })} />
          </Field>
          <Button variant="plain" icon={<TrashIcon />} aria-label={t('lb.removeBackend', { n: n + 1 })} onClick={() => (create.reset(), setBackends((all) => all.filter((x) => x.key !== b.key)))} />
        </div>
      ))}
      <div>
        <Button variant="secondary" isDisabled={within.length === 0} onClick={() => (setBackends((all) => [...all, { key: next, instance: within[0]?.meta.id ?? '', port: form.port }]), setNext(next + 1))}>{t('lb.addBackend')}</Button>
      </div>
      <Checkbox id="lb-health" label={t('lb.health')} isChecked={form.health} onChange={(_, health) => set({ health })} />
      {ips.length > 0 && (
        <Field id="lb-floating" label={t('lb.floating')} path="spec.floatingIP" errors={errors}>
          <FormSelect id="lb-floating" value={form.floatingIP} onChange={(_, floatingIP) => set({ floatingIP })}>
            <FormSelectOption value="" label={t('lb.inside')} />
            {ips.map((f) => <FormSelectOption key={f.meta.id} value={f.meta.name} label={`${f.meta.name} ${f.assignment?.address ?? ''}`} />)}
          </FormSelect>
        </Field>
      )}
      <Same cli={balancerCommand(readable)} curl={asCurl('POST', '/v1/load-balancers', readable)} />
    </FormDialog>
  );
}
