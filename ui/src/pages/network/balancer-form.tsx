// The form that creates or changes a load balancer.
import { Button, FormSelect, FormSelectOption, TextInput } from '@patternfly/react-core';
import { TrashIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { createBalancer, useFloatingIPs, useNetworkPage, type LoadBalancer } from '../../api/network';
import { useInstances } from '../../api/queries';
import { loadBalancers } from '../../api/resource';
import { mostChoices } from '../../api/storage';
import { useText, type Key } from '../../i18n';
import { balancerForm, balancerSpec, emptyBalancer, type Backend, type BalancerForm } from '../../lib/balancer';
import { balancerCommand } from '../../lib/commands';
import { nextKey } from '../../lib/merge';
import { asCurl } from '../../lib/shell';
import { CheckField } from '../../parts/check-field';
import { Conflict } from '../../parts/conflict';
import { useEdit } from '../../parts/edit';
import { Field } from '../../parts/field';
import { FormDialog } from '../../parts/form-dialog';
import { ProjectField, useNewIn } from '../../parts/project-field';
import { Same } from '../../parts/same';
import { useProject } from '../../parts/project';

type Set = <K extends keyof BalancerForm>(name: K, value: BalancerForm[K]) => void;

/** useChoices returns the networks, floating IPs and instances that a load balancer of a project can use. */
function useChoices(project: string, form: BalancerForm) {
  const networks =
    useNetworkPage({ project, limit: mostChoices }).data?.items.filter((n) => n.spec.cidr4 && !n.meta.deletedAt) ?? [];
  const ips =
    useFloatingIPs({ project, limit: mostChoices }).data?.items.filter((f) => !f.spec.instance && !f.meta.deletedAt) ??
    [];
  const instances = useInstances({ project, limit: mostChoices }).data?.items ?? [];
  const network = form.network || (networks[0]?.meta.id ?? '');
  const within = instances.filter((i) => !i.meta.deletedAt && i.spec.networks?.some((n) => n.network === network));
  const named = (id: string) => [...networks, ...ips, ...instances].find((o) => o.meta.id === id)?.meta.name ?? id;
  return { networks, ips, within, network, named };
}

interface FieldsProps {
  form: BalancerForm;
  set: Set;
  choices: ReturnType<typeof useChoices>;
  /** Its network cannot change. */
  fixed?: boolean;
  onRemoved?: () => void;
}

function Fields({ form, set, choices: { networks, ips, within, network, named }, fixed, onRemoved }: FieldsProps) {
  const { t } = useText();
  const setBackend = (key: number, change: Partial<Backend>) =>
    set(
      'backends',
      form.backends.map((b) => (b.key === key ? { ...b, ...change } : b)),
    );
  /** Adds the current choice if the list does not contain it. */
  const also = (id: string, items: { meta: { id?: string } }[]) =>
    id !== '' && !items.some((o) => o.meta.id === id) && <FormSelectOption value={id} label={named(id)} />;
  return (
    <>
      <Field id="lb-name" label={t('common.name')} help={t('new.nameHelp')} path="meta.name" required>
        <TextInput
          id="lb-name"
          value={form.name}
          onChange={(_, name) => set('name', name)}
          isRequired
          autoComplete="off"
          spellCheck={false}
        />
      </Field>
      <div className="basalt-pair">
        <Field id="lb-network" label={t('lb.network')} path="spec.network">
          <FormSelect
            id="lb-network"
            value={network}
            isDisabled={fixed}
            onChange={(_, v) => (set('network', v), set('backends', []))}
          >
            {networks.map((n) => (
              <FormSelectOption key={n.meta.id} value={n.meta.id} label={`${n.meta.name} ${n.spec.cidr4}`} />
            ))}
            {also(network, networks)}
          </FormSelect>
        </Field>
        <Field id="lb-protocol" label={t('sg.protocol')} path="spec.protocol">
          <FormSelect id="lb-protocol" value={form.protocol} onChange={(_, v) => set('protocol', v as 'tcp' | 'udp')}>
            {['tcp', 'udp'].map((p) => (
              <FormSelectOption key={p} value={p} label={p} />
            ))}
          </FormSelect>
        </Field>
        <Field id="lb-port" label={t('lb.port')} path="spec.port" required>
          <TextInput
            id="lb-port"
            type="number"
            min={1}
            max={65535}
            step={1}
            isRequired
            value={form.port}
            onChange={(_, port) => set('port', port)}
          />
        </Field>
      </div>
      {form.backends.map((b, n) => (
        <div key={b.key} className="basalt-backend">
          <Field id={`lb-backend-${b.key}`} label={t('lb.backend', { n: n + 1 })} path={`spec.backends[${n}]`}>
            <FormSelect
              id={`lb-backend-${b.key}`}
              value={b.instance}
              onChange={(_, instance) => setBackend(b.key, { instance })}
            >
              {within.map((i) => (
                <FormSelectOption key={i.meta.id} value={i.meta.id} label={i.meta.name} />
              ))}
              {also(b.instance, within)}
            </FormSelect>
          </Field>
          <Field
            id={`lb-backend-port-${b.key}`}
            label={t('lb.backendPort', { n: n + 1 })}
            path={`spec.backends[${n}].port`}
            required
          >
            <TextInput
              id={`lb-backend-port-${b.key}`}
              type="number"
              min={1}
              max={65535}
              step={1}
              isRequired
              value={b.port}
              onChange={(_, port) => setBackend(b.key, { port })}
            />
          </Field>
          <Button
            variant="plain"
            icon={<TrashIcon />}
            aria-label={t('lb.removeBackend', { n: n + 1 })}
            onClick={() => (
              onRemoved?.(),
              set(
                'backends',
                form.backends.filter((x) => x.key !== b.key),
              )
            )}
          />
        </div>
      ))}
      <div>
        <Button
          variant="secondary"
          isDisabled={within.length === 0}
          onClick={() =>
            set('backends', [...form.backends, { key: nextKey(), instance: within[0]?.meta.id ?? '', port: form.port }])
          }
        >
          {t('lb.addBackend')}
        </Button>
      </div>
      <CheckField
        id="lb-health"
        label={t('lb.health')}
        path="spec.healthCheck"
        checked={form.health}
        onChange={(health) => set('health', health)}
      />
      {(ips.length > 0 || form.floatingIP) && (
        <Field id="lb-floating" label={t('lb.floating')} path="spec.floatingIP">
          <FormSelect
            id="lb-floating"
            value={form.floatingIP}
            onChange={(_, floatingIP) => set('floatingIP', floatingIP)}
          >
            <FormSelectOption value="" label={t('lb.inside')} />
            {ips.map((f) => (
              <FormSelectOption
                key={f.meta.id}
                value={f.meta.id}
                label={`${f.meta.name} ${f.assignment?.address ?? ''}`}
              />
            ))}
            {also(form.floatingIP, ips)}
          </FormSelect>
        </Field>
      )}
    </>
  );
}

export function CreateBalancer({ onClose }: { onClose: () => void }) {
  const { t } = useText();
  const client = useQueryClient();
  const place = useNewIn();
  const [form, setForm] = useState(emptyBalancer);
  const choices = useChoices(place.id, form);
  const whole = { ...form, network: choices.network };
  const balancer = (project: string, named?: (id: string) => string): LoadBalancer => ({
    kind: 'LoadBalancer',
    meta: { name: form.name.trim(), project },
    spec: balancerSpec(whole, named),
  });
  const create = useMutation({
    mutationFn: () => createBalancer(balancer(place.id)),
    onSuccess: () => (onClose(), client.invalidateQueries({ queryKey: ['LoadBalancer', 'list'] })),
  });
  const readable = balancer(place.name, choices.named);
  return (
    <FormDialog
      title={t('lb.create')}
      action={t('common.create')}
      busy={create.isPending}
      error={create.error}
      schema="LoadBalancer"
      body={balancer(place.id)}
      onSubmit={create.mutate}
      onClose={onClose}
      wide
    >
      <ProjectField of={place} />
      <Fields
        form={form}
        set={(name, value) => setForm((f) => ({ ...f, [name]: value }))}
        choices={choices}
        onRemoved={create.reset}
      />
      <Same cli={balancerCommand(readable)} curl={asCurl('POST', '/v1/load-balancers', readable)} />
    </FormDialog>
  );
}

const labels: Record<keyof BalancerForm, Key> = {
  name: 'common.name',
  network: 'lb.network',
  protocol: 'sg.protocol',
  port: 'lb.port',
  backends: 'lb.backends',
  health: 'lb.health',
  floatingIP: 'lb.floating',
};

const bodyOf = (balancer: LoadBalancer | undefined, f: BalancerForm, named?: (id: string) => string): LoadBalancer => ({
  kind: 'LoadBalancer',
  meta: { ...balancer?.meta, name: f.name.trim() },
  spec: balancerSpec(f, named),
});

export function EditBalancer({ balancer, onClose }: { balancer: LoadBalancer; onClose: () => void }) {
  const { t } = useText();
  const { projects } = useProject();
  const edit = useEdit<LoadBalancer, BalancerForm>({
    of: loadBalancers,
    object: balancer,
    fields: (b) => (b ? balancerForm(b) : emptyBalancer),
    body: bodyOf,
    onSaved: onClose,
  });
  const choices = useChoices(balancer.meta.project ?? '', edit.form);
  const project = projects.find((p) => p.meta.id === balancer.meta.project)?.meta.name ?? balancer.meta.project;
  const readable = { ...bodyOf(balancer, edit.form, choices.named), meta: { name: edit.form.name.trim(), project } };
  const said = (field: keyof BalancerForm, value: NonNullable<unknown>): string | undefined => {
    if (field === 'network' || field === 'floatingIP') return choices.named(value as string);
    const backend = ({ instance, port }: Backend) => `${choices.named(instance)}:${port}`;
    return field === 'backends'
      ? Array.isArray(value)
        ? (value as Backend[]).map(backend).join(', ')
        : backend(value as Backend)
      : undefined;
  };
  return (
    <FormDialog
      title={t('lb.editTitle', { name: balancer.meta.name })}
      action={t('lb.save')}
      busy={edit.busy}
      disabled={edit.gone}
      error={edit.error}
      schema="LoadBalancer"
      body={edit.body}
      onSubmit={edit.submit}
      onClose={onClose}
      wide
    >
      <Conflict edit={edit} label={(f) => t(labels[f])} text={said} />
      <Fields form={edit.form} set={(name, value) => edit.set(name)(value)} choices={choices} fixed />
      <Same cli={balancerCommand(readable, balancer.meta.name)} curl={edit.curl} />
    </FormDialog>
  );
}
