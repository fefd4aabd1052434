import { Button, FormSelect, FormSelectOption, TextInput, Title } from '@patternfly/react-core';
import { HddIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import type { Schemas } from '../../api/client';
import { useDisks } from '../../api/cluster';
import { useNodes } from '../../api/queries';
import { change, disks } from '../../api/resource';
import { useText } from '../../i18n';
import { formatBytes } from '../../lib/format';
import { asCommand, changeAsCurl } from '../../lib/shell';
import { CheckField } from '../../parts/check-field';
import { Field } from '../../parts/field';
import { FormDialog } from '../../parts/form-dialog';
import { Empty, ObjectList, type Column } from '../../parts/list';
import { useRemoval } from '../../parts/removal';
import { Same } from '../../parts/same';
import { ToneLabel, type Tone } from '../../parts/tone';

type Disk = Schemas['Disk'];

const tones: Record<string, Tone> = { Ready: 'good', Failed: 'bad', Free: 'off', InUse: 'off' };

const withUse = ({ kind, meta }: Disk, spec: Schemas['DiskSpec']): Disk => ({ kind, meta, spec });
const setUse = (disk: Disk, spec: Schemas['DiskSpec']) =>
  change(disks, disk.meta.id ?? '', (now) => withUse(now, spec));

function Take({ disk, onDone, onClose }: { disk: Disk; onDone: () => void; onClose: () => void }) {
  const { t } = useText();
  const [wipe, setWipe] = useState(false);
  const [use, setUseOf] = useState<'ceph' | 'ceph-db' | 'local'>('ceph');
  const [deviceClass, setClass] = useState<Schemas['DiskSpec']['deviceClass']>('');
  const [dbDisk, setDB] = useState('');
  const [pool, setPool] = useState('');
  const spec: Schemas['DiskSpec'] = {
    use,
    wipe,
    ...(use === 'local' && { pool }),
    ...(use === 'ceph' && deviceClass && { deviceClass }),
    ...(use === 'ceph' && dbDisk && { dbDisk }),
  };
  const databases =
    useDisks().data?.items.filter((d) => d.spec.use === 'ceph-db' && d.status?.node === disk.status?.node) ?? [];
  const save = useMutation({ mutationFn: () => setUse(disk, spec), onSuccess: onDone });
  return (
    <FormDialog
      title={t('dsk.takeTitle', { name: disk.meta.name })}
      help={t(use === 'local' ? 'dsk.takeLocalHelp' : use === 'ceph-db' ? 'dsk.takeDBHelp' : 'dsk.takeHelp')}
      action={t('dsk.take')}
      busy={save.isPending}
      error={save.error}
      schema="Disk"
      body={{ meta: disk.meta, spec }}
      onSubmit={save.mutate}
      onClose={onClose}
    >
      <Field id="disk-use" label={t('dsk.use')} path="spec.use">
        <FormSelect id="disk-use" value={use} onChange={(_, v) => setUseOf(v as typeof use)}>
          <FormSelectOption value="ceph" label="Ceph" />
          <FormSelectOption value="ceph-db" label={t('dsk.db')} />
          <FormSelectOption value="local" label={t('dsk.local')} />
        </FormSelect>
      </Field>
      {use === 'local' && (
        <Field id="disk-pool" label={t('dsk.poolName')} help={t('dsk.poolNameHelp')} path="spec.pool">
          <TextInput id="disk-pool" value={pool} onChange={(_, v) => setPool(v)} />
        </Field>
      )}
      {use === 'ceph' && (
        <Field id="disk-class" label={t('ceph.class')} help={t('dsk.classHelp')} path="spec.deviceClass">
          <FormSelect id="disk-class" value={deviceClass} onChange={(_, v) => setClass(v as typeof deviceClass)}>
            <FormSelectOption value="" label={t('dsk.detected')} />
            <FormSelectOption value="hdd" label="hdd" />
            <FormSelectOption value="ssd" label="ssd" />
            <FormSelectOption value="nvme" label="nvme" />
          </FormSelect>
        </Field>
      )}
      {use === 'ceph' && databases.length > 0 && (
        <Field id="disk-db" label={t('dsk.dbDisk')} help={t('dsk.dbDiskHelp')} path="spec.dbDisk">
          <FormSelect id="disk-db" value={dbDisk} onChange={(_, v) => setDB(v)}>
            <FormSelectOption value="" label={t('dsk.dbSelf')} />
            {databases.map((d) => (
              <FormSelectOption key={d.meta.id} value={d.meta.id} label={d.meta.name} />
            ))}
          </FormSelect>
        </Field>
      )}
      <CheckField
        id="disk-wipe"
        label={t('dsk.wipe')}
        help={t('dsk.wipeHelp')}
        path="spec.wipe"
        checked={wipe}
        onChange={setWipe}
      />
      <Same
        cli={asCommand(['disk', 'use', disk.meta.name, use], {
          pool: spec.pool,
          'device-class': spec.deviceClass,
          'db-disk': databases.find((d) => d.meta.id === spec.dbDisk)?.meta.name,
          wipe,
        })}
        curl={changeAsCurl(disks, disk, withUse(disk, spec))}
      />
    </FormDialog>
  );
}

export function Disks() {
  const { t, language } = useText();
  const client = useQueryClient();
  const query = useDisks();
  const nodes = useNodes({ limit: 1000 });
  const [taking, take] = useState<Disk | null>(null);
  const again = () => client.invalidateQueries({ queryKey: ['Disk', 'list'] });
  const release = useRemoval<Disk>({
    remove: (d) => setUse(d, {}),
    title: (name) => t('dsk.releaseTitle', { name }),
    help: t('dsk.releaseManyHelp'),
    helpOf: ({ spec: { use } }) =>
      t(use === 'local' ? 'dsk.releaseLocalHelp' : use === 'ceph-db' ? 'dsk.releaseDBHelp' : 'dsk.releaseHelp'),
    action: t('dsk.release'),
  });
  const node = (d: Disk) =>
    nodes.data?.items.find((n) => n.meta.id === d.status?.node)?.meta.name ?? d.status?.node ?? '';
  const items =
    query.data?.items.toSorted((a, b) => node(a).localeCompare(node(b)) || a.meta.name.localeCompare(b.meta.name)) ??
    [];
  const columns: Column<Disk>[] = [
    {
      id: 'name',
      title: t('common.name'),
      cell: (d) => (
        <>
          {d.meta.name}
          <br />
          <span className="basalt-note">{[d.status?.model, d.status?.serial].filter(Boolean).join(' ')}</span>
        </>
      ),
    },
    {
      id: 'node',
      title: t('one.node'),
      cell: (d) => (d.status?.node ? <Link href={`/nodes/${d.status.node}`}>{node(d)}</Link> : '–'),
    },
    {
      id: 'state',
      title: t('common.state'),
      value: (d) => d.status?.state,
      cell: ({ status: s, spec: { use } }) => (
        <div>
          <ToneLabel
            tone={tones[s?.state ?? ''] ?? 'busy'}
            text={t(use !== 'ceph' && s?.state === 'Ready' ? 'dsk.inPool' : `dsk.${s?.state ?? 'Preparing'}`)}
          />{' '}
          <span className="basalt-note">{s?.reason}</span>
        </div>
      ),
    },
    {
      id: 'size',
      title: t('dsk.size'),
      value: (d) => d.status?.sizeBytes,
      cell: ({ status: s }) =>
        s?.sizeBytes ? `${formatBytes(s.sizeBytes, language)} ${t(s.rotational ? 'dsk.hdd' : 'dsk.ssd')}` : '–',
    },
    { id: 'path', title: t('dsk.path'), cell: ({ status: s }) => s?.path ?? '–' },
    {
      id: 'use',
      title: t('dsk.use'),
      cell: (d) =>
        d.spec.use === 'ceph'
          ? `Ceph${(d.status?.osd ?? -1) >= 0 ? ` (${[`osd.${d.status?.osd}`, d.status?.deviceClass, t(d.status?.encrypted ? 'ceph.encrypted' : 'ceph.unencrypted')].filter(Boolean).join(', ')})` : ''}`
          : d.spec.use === 'ceph-db'
            ? t('dsk.db')
            : d.spec.use === 'local'
              ? t('dsk.poolOf', { name: d.spec.pool ?? '' })
              : t('dsk.nothing'),
    },
    {
      id: 'actions',
      control: true,
      title: t('common.actions'),
      cell: (d) =>
        d.spec.use ? (
          <Button
            variant="link"
            isInline
            isDanger
            aria-label={`${t('dsk.release')}: ${d.meta.name}`}
            onClick={() => release.ask(d)}
          >
            {t('dsk.release')}
          </Button>
        ) : (
          <Button variant="link" isInline aria-label={`${t('dsk.take')}: ${d.meta.name}`} onClick={() => take(d)}>
            {t('dsk.take')}
          </Button>
        ),
    },
  ];
  return (
    <>
      <Title headingLevel="h2" size="lg">
        {t('dsk.title')}
      </Title>
      <ObjectList
        name="disks"
        label={t('dsk.title')}
        columns={columns}
        query={{ ...query, data: query.data && { ...query.data, items } }}
        bulk={[release.bulk((d) => Boolean(d.spec.use))]}
        keyOf={(d) => d.meta.id ?? d.meta.name}
        empty={<Empty title={t('dsk.empty')} help={t('dsk.emptyHelp')} icon={HddIcon} />}
      />
      {taking && <Take disk={taking} onDone={() => (take(null), void again())} onClose={() => take(null)} />}
      {release.dialog}
    </>
  );
}
