import {
  Alert,
  Button,
  Card,
  CardBody,
  CardHeader,
  CardTitle,
  FormSelect,
  FormSelectOption,
  Progress,
  TextInput,
} from '@patternfly/react-core';
import { StorageDomainIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schemas } from '../../api/client';
import { useCeph } from '../../api/cluster';
import { cephClusters, change } from '../../api/resource';
import { useText } from '../../i18n';
import { formatBytes } from '../../lib/format';
import { asCommand } from '../../lib/shell';
import { Confirm } from '../../parts/confirm';
import { CheckField } from '../../parts/check-field';
import { CheckGroup } from '../../parts/check-group';
import { Conflict } from '../../parts/conflict';
import { useEdit } from '../../parts/edit';
import { ErrorAlert } from '../../parts/error';
import { Field } from '../../parts/field';
import { FormDialog } from '../../parts/form-dialog';
import { Empty } from '../../parts/list';
import { Rows } from '../../parts/rows';
import { Same } from '../../parts/same';
import { ToneLabel, type Tone } from '../../parts/tone';

type Cluster = Schemas['CephCluster'];

const tones: Record<string, Tone> = { OK: 'good', Warning: 'warning', Error: 'bad' };

interface Form {
  replicas: string;
  failureDomain: 'host' | 'osd';
  deviceClass: DeviceClass | '';
  encryptDisks: boolean;
  pools: DeviceClass[];
}

type DeviceClass = Schemas['CephPool']['deviceClass'];
const classes: DeviceClass[] = ['hdd', 'ssd', 'nvme'];

const formOf = (c: Cluster | undefined): Form => ({
  replicas: String(c?.spec.replicas || 3),
  failureDomain: c?.spec.failureDomain || 'host',
  deviceClass: c?.spec.deviceClass ?? '',
  encryptDisks: c?.spec.encryptDisks ?? false,
  pools: c?.spec.pools?.map((p) => p.deviceClass) ?? [],
});

const bodyOf = (c: Cluster | undefined, f: Form): Cluster => ({
  kind: 'CephCluster',
  meta: { name: 'ceph', ...(c && { revision: c.meta.revision, labels: c.meta.labels }) },
  spec: {
    enabled: true,
    replicas: Number(f.replicas),
    failureDomain: f.failureDomain,
    ...(f.deviceClass && { deviceClass: f.deviceClass }),
    ...(f.encryptDisks && { encryptDisks: true }),
    ...(f.pools.length > 0 && {
      // A pool that exists keeps its number of replicas.
      pools: f.pools.map((k) => c?.spec.pools?.find((p) => p.deviceClass === k) ?? { deviceClass: k }),
    }),
  },
});

const labels = {
  replicas: 'ceph.copies',
  failureDomain: 'ceph.domain',
  deviceClass: 'ceph.class',
  encryptDisks: 'ceph.encrypt',
  pools: 'ceph.pools',
} as const;

function CephForm({ cluster, onClose }: { cluster?: Cluster; onClose: () => void }) {
  const { t } = useText();
  const edit = useEdit<Cluster, Form>({
    of: cephClusters,
    object: cluster,
    fields: formOf,
    body: bodyOf,
    onSaved: onClose,
  });
  const { form } = edit;
  return (
    <FormDialog
      title={t(cluster?.spec.enabled ? 'ceph.change' : 'ceph.enable')}
      help={t('ceph.enableHelp')}
      action={t(cluster?.spec.enabled ? 'op.save' : 'ceph.enable')}
      busy={edit.busy}
      disabled={edit.gone}
      error={edit.error}
      schema="CephCluster"
      body={edit.body}
      onSubmit={edit.submit}
      onClose={onClose}
    >
      <Conflict
        edit={edit}
        label={(f) => t(labels[f])}
        text={(f, v) => (f === 'failureDomain' ? t(`ceph.${v as Form['failureDomain']}`) : undefined)}
      />
      <Field id="ceph-copies" label={t('ceph.copies')} help={t('ceph.copiesHelp')} path="spec.replicas" required>
        <TextInput
          id="ceph-copies"
          type="number"
          min={1}
          max={5}
          value={form.replicas}
          onChange={(_, v) => edit.set('replicas')(v)}
          isRequired
        />
      </Field>
      <Field id="ceph-domain" label={t('ceph.domain')} help={t('ceph.domainHelp')} path="spec.failureDomain">
        <FormSelect
          id="ceph-domain"
          value={form.failureDomain}
          onChange={(_, v) => edit.set('failureDomain')(v as Form['failureDomain'])}
        >
          <FormSelectOption value="host" label={t('ceph.host')} />
          <FormSelectOption value="osd" label={t('ceph.osd')} />
        </FormSelect>
      </Field>
      <Field id="ceph-class" label={t('ceph.class')} help={t('ceph.classHelp')} path="spec.deviceClass">
        <FormSelect
          id="ceph-class"
          value={form.deviceClass}
          onChange={(_, v) => edit.set('deviceClass')(v as Form['deviceClass'])}
        >
          <FormSelectOption value="" label={t('ceph.allDisks')} />
          {classes.map((k) => (
            <FormSelectOption key={k} value={k} label={k} />
          ))}
        </FormSelect>
      </Field>
      <CheckGroup
        id="ceph-pools"
        label={t('ceph.pools')}
        help={t('ceph.poolsHelp')}
        path="spec.pools"
        options={classes.map((k) => ({ value: k, label: `ceph-${k}` }))}
        chosen={form.pools}
        set={edit.set('pools')}
      />
      <CheckField
        id="ceph-encrypt"
        label={t('ceph.encrypt')}
        help={t('ceph.encryptHelp')}
        path="spec.encryptDisks"
        checked={form.encryptDisks}
        onChange={edit.set('encryptDisks')}
      />
      <Same
        cli={asCommand(['ceph', 'enable'], {
          replicas: form.replicas,
          'failure-domain': form.failureDomain,
          'device-class': form.deviceClass,
          'encrypt-disks': form.encryptDisks,
        })}
        curl={edit.curl}
      />
    </FormDialog>
  );
}

export function Ceph() {
  const { t, language } = useText();
  const client = useQueryClient();
  const query = useCeph();
  const [editing, edit] = useState(false);
  const [leaving, leave] = useState(false);
  const again = () => client.invalidateQueries({ queryKey: ['CephCluster', 'list'] });
  const cluster = query.data?.items[0];
  const off = useMutation({
    mutationFn: (id: string) =>
      change(cephClusters, id, (now) => ({ kind: now.kind, meta: now.meta, spec: { ...now.spec, enabled: false } })),
    onSuccess: () => (leave(false), again()),
  });
  const s = cluster?.status;
  const used = t('gpu.vramOf', {
    used: formatBytes(s?.usedBytes ?? 0, language),
    all: formatBytes(s?.sizeBytes ?? 0, language),
  });
  const phase = s?.phase || 'Pending';
  const enable = <Button onClick={() => edit(true)}>{t('ceph.enable')}</Button>;
  return (
    <>
      <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
      {query.data && !cluster?.spec.enabled && (
        <Empty title={t('ceph.off')} help={t('ceph.offHelp')} icon={StorageDomainIcon} action={enable} />
      )}
      {cluster?.spec.enabled && (
        <Card>
          <CardHeader
            actions={{
              hasNoOffset: true,
              actions: (
                <>
                  <Button variant="link" onClick={() => edit(true)}>
                    {t('ceph.change')}
                  </Button>
                  <Button variant="link" isDanger onClick={() => (off.reset(), leave(true))}>
                    {t('ceph.disable')}
                  </Button>
                </>
              ),
            }}
          >
            <CardTitle component="h2">Ceph</CardTitle>
          </CardHeader>
          <CardBody className="basalt-stack">
            <div role="status">
              {s?.health && phase === 'Ready' ? (
                <ToneLabel tone={tones[s.health] ?? 'warning'} text={t(`ceph.${s.health}`)} />
              ) : (
                <ToneLabel tone={phase === 'Failed' ? 'bad' : 'busy'} text={t(`ceph.${phase}`)} />
              )}{' '}
              {s?.lastError || s?.summary}
            </div>
            {s?.next && (
              <Alert
                component="h3"
                variant={s.health === 'Error' || phase === 'Failed' ? 'danger' : 'info'}
                isInline
                title={t('ceph.next')}
              >
                {s.next}
              </Alert>
            )}
            {Boolean(s?.sizeBytes) && (
              <Progress
                id="ceph-used"
                title={t('ceph.used')}
                value={(100 * (s?.usedBytes ?? 0)) / (s?.sizeBytes ?? 1)}
                size="sm"
                label={used}
                valueText={used}
              />
            )}
            <Rows
              rows={[
                [t('ceph.copies'), String(cluster.spec.replicas || 3)],
                [t('ceph.domain'), t(`ceph.${cluster.spec.failureDomain || 'host'}`)],
                [t('ceph.newDisks'), t(cluster.spec.encryptDisks ? 'ceph.encrypted' : 'ceph.unencrypted')],
                ...(s?.pools ?? []).map((p): [string, string] => [
                  t('ceph.pool', { name: p.name }),
                  [
                    p.deviceClass || t('ceph.allDisks'),
                    t('ceph.poolSpace', {
                      used: formatBytes(p.usedBytes ?? 0, language),
                      free: formatBytes(p.freeBytes ?? 0, language),
                    }),
                    p.reason,
                  ]
                    .filter(Boolean)
                    .join(', '),
                ]),
                [t('ceph.disks'), s?.osds ? t('ceph.disksUp', { up: s.osdsUp ?? 0, all: s.osds }) : t('common.none')],
              ]}
            />
            {(s?.checks?.length ?? 0) > 0 && (
              <ul>
                {s?.checks?.map((c) => (
                  <li key={c.name}>
                    {c.summary} <span className="basalt-note">{c.name}</span>
                  </li>
                ))}
              </ul>
            )}
          </CardBody>
        </Card>
      )}
      {editing && <CephForm cluster={cluster} onClose={() => edit(false)} />}
      {leaving && (
        <Confirm
          title={t('ceph.disableTitle')}
          help={t('ceph.disableHelp')}
          action={t('ceph.disable')}
          danger
          name="ceph"
          busy={off.isPending}
          error={off.error}
          onConfirm={() => off.mutate(cluster?.meta.id ?? '')}
          onClose={() => leave(false)}
        />
      )}
    </>
  );
}
