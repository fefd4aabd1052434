// Changes an instance's name, size and CPUs.
import type { Instance, Schemas } from '../../api/client';
import { useDryChange, useSettled } from '../../api/offers';
import { useFlavors, usePools } from '../../api/queries';
import { instances } from '../../api/resource';
import { useText, type Key } from '../../i18n';
import { gib } from '../../lib/draft';
import { policyIn, type Machine } from '../../lib/machine';
import { problems } from '../../lib/problems';
import { tiers, type Tier } from '../../lib/tier';
import { sameSize } from '../../lib/resize';
import { asCommand, sizeFlag } from '../../lib/shell';
import { CheckField } from '../../parts/check-field';
import { Conflict } from '../../parts/conflict';
import { useEdit } from '../../parts/edit';
import { FormDialog } from '../../parts/form-dialog';
import { CPUField, CPUPolicyField, HugePagesField } from '../../parts/machine-fields';
import { Same } from '../../parts/same';
import { SelectField, TextField } from '../../parts/text-field';
import { NewSize } from './new-size';

interface Form {
  name: string;
  flavor: string;
  vgpu: boolean;
  pool: string;
  vram: string;
  share: string;
  tier: Tier;
  cpu: Machine['cpu'];
  cpuPolicy: Machine['cpuPolicy'];
  hugePages: Machine['hugePages'];
  bootFrom: NonNullable<Instance['spec']['bootFrom']>;
  queue: boolean;
}

const labels: Record<keyof Form, Key> = {
  name: 'common.name',
  flavor: 'new.flavor',
  vgpu: 'new.wantVgpu',
  pool: 'new.pool',
  vram: 'new.vram',
  share: 'new.share',
  tier: 'new.tier',
  cpu: 'mach.cpu',
  cpuPolicy: 'mach.policy',
  hugePages: 'mach.pages',
  bootFrom: 'mach.boot',
  queue: 'size.queue',
};

function formOf(i: Instance | undefined): Form {
  const v = i?.spec.vgpu;
  return {
    name: i?.meta.name ?? '',
    flavor: i?.spec.flavor ?? '',
    vgpu: Boolean(v),
    pool: v?.pool || 'default',
    vram: String((v?.vramBytes ?? 4 * gib) / gib),
    share: String(v ? (v.sharePercent ?? 0) : 25),
    tier: v?.tier ?? 'standard',
    cpu: i?.spec.cpu === 'host' ? 'host' : '',
    cpuPolicy: i?.spec.cpuPolicy ?? '',
    hugePages: i?.spec.hugePages ?? '',
    bootFrom: i?.spec.bootFrom ?? 'disk',
    queue: i?.spec.whenFull === 'Queue',
  };
}

/** The model is kept, as the form does not show it, unless the pool changes. */
function vgpuOf(f: Form, was: Schemas['VGPUSpec'] | undefined): Schemas['VGPUSpec'] {
  const model = (was?.pool || 'default') === f.pool ? was?.model : undefined;
  return {
    pool: f.pool,
    ...(model && { model }),
    vramBytes: Math.round(Number(f.vram) * gib),
    ...(Number(f.share) > 0 && { sharePercent: Number(f.share) }),
    ...(f.tier !== 'standard' && { tier: f.tier }),
  };
}

function bodyOf(i: Instance | undefined, f: Form): Instance {
  return {
    kind: 'Instance',
    meta: { ...i?.meta, name: f.name.trim() },
    spec: {
      ...i?.spec,
      flavor: f.flavor,
      vgpu: f.vgpu ? vgpuOf(f, i?.spec.vgpu) : undefined,
      cpu: f.cpu || undefined,
      cpuPolicy: f.cpuPolicy || undefined,
      hugePages: (!f.vgpu && f.hugePages) || undefined,
      bootFrom: f.bootFrom === 'medium' ? 'medium' : undefined,
      whenFull: f.queue ? 'Queue' : i?.spec.whenFull === 'Queue' ? undefined : i?.spec.whenFull,
    },
  };
}

export function ChangeInstance({ instance, onClose }: { instance: Instance; onClose: () => void }) {
  const text = useText();
  const { t } = text;
  const flavors = useFlavors();
  const pools = usePools();
  const edit = useEdit<Instance, Form>({
    of: instances,
    object: instance,
    fields: formOf,
    body: bodyOf,
    onSaved: onClose,
  });
  const {
    form,
    body: { meta, spec },
  } = edit;
  const resizes = !sameSize(instance.spec, spec);
  const patch = JSON.stringify(instances.partial(instance, edit.body));
  const settled = useSettled(patch, 600);
  // What is being typed, or is not valid, has neither room nor a price.
  const complete = settled === patch && problems('Instance', edit.body, text).length === 0;
  const tried = useDryChange(instance.meta.id ?? '', settled, resizes && complete && !edit.busy);
  const flavorName = (id: string) => flavors.data?.items.find((f) => f.meta.id === id)?.meta.name ?? id;
  const flavorSpec = (id: string) => flavors.data?.items.find((f) => f.meta.id === id)?.spec;
  const resized = (id: string) => {
    edit.set('flavor')(id);
    edit.set('cpuPolicy')(policyIn(form.cpuPolicy, flavorSpec(id)));
  };
  // The current flavor may have been deleted; the instance keeps it.
  const named = (all: { meta: { id?: string; name: string } }[] | undefined, has: string): [string, string][] => {
    const options = (all ?? []).map((o): [string, string] => [o.meta.id ?? '', o.meta.name]);
    return options.some(([id]) => id === has) ? options : [[has, has], ...options];
  };
  return (
    <FormDialog
      title={t('pool.changeTitle', { name: instance.meta.name })}
      help={t('one.changeHelp')}
      action={t('op.save')}
      busy={edit.busy}
      disabled={edit.gone || !edit.edited}
      error={edit.error}
      live={tried.error}
      schema="Instance"
      body={edit.body}
      onSubmit={edit.submit}
      onClose={onClose}
    >
      <Conflict
        edit={edit}
        label={(f) => t(labels[f])}
        text={(f, v) => (f === 'flavor' ? flavorName(v as string) : f === 'tier' ? t(`tier.${v as Tier}`) : undefined)}
      />
      <TextField
        id="change-name"
        label={t('common.name')}
        help={t('new.nameHelp')}
        path="meta.name"
        value={form.name}
        onChange={edit.set('name')}
        required
      />
      <SelectField
        id="change-flavor"
        label={t('new.flavor')}
        path="spec.flavor"
        value={form.flavor}
        onChange={resized}
        options={named(flavors.data?.items, form.flavor)}
      />
      <CPUPolicyField
        id="change-cpu-policy"
        flavor={flavorSpec(form.flavor)}
        value={form.cpuPolicy}
        onChange={(v) => edit.set('cpuPolicy')(v as Form['cpuPolicy'])}
      />
      <CPUField
        id="change-cpu"
        help={`${t('mach.cpuHelp')} ${t('mach.nextStart')}`}
        value={form.cpu}
        onChange={(v) => edit.set('cpu')(v as Form['cpu'])}
      />
      {(instance.spec.media ?? []).length > 0 && (
        <SelectField
          id="change-boot"
          label={t('mach.boot')}
          help={t('mach.nextStart')}
          path="spec.bootFrom"
          value={form.bootFrom}
          onChange={(v) => edit.set('bootFrom')(v as Form['bootFrom'])}
          options={[
            ['disk', t('mach.boot.disk')],
            ['medium', t('mach.boot.medium')],
          ]}
        />
      )}
      <CheckField
        id="change-vgpu"
        label={t('new.wantVgpu')}
        path="spec.vgpu"
        checked={form.vgpu}
        onChange={edit.set('vgpu')}
      />
      {!form.vgpu && (
        <HugePagesField
          id="change-huge-pages"
          value={form.hugePages}
          onChange={(v) => edit.set('hugePages')(v as Form['hugePages'])}
        />
      )}
      {form.vgpu && (
        <>
          {(pools.data?.items.length ?? 0) > 1 && (
            <SelectField
              id="change-pool"
              label={t('new.pool')}
              path="spec.vgpu.pool"
              value={form.pool}
              onChange={edit.set('pool')}
              options={(pools.data?.items ?? []).map((p) => [p.meta.name, p.meta.name])}
            />
          )}
          <TextField
            id="change-vram"
            type="number"
            label={t('new.vram')}
            path="spec.vgpu.vramBytes"
            value={form.vram}
            onChange={edit.set('vram')}
            required
          />
          <TextField
            id="change-share"
            type="number"
            label={t('new.share')}
            help={t('new.shareHelp')}
            path="spec.vgpu.sharePercent"
            value={form.share}
            onChange={edit.set('share')}
            required
          />
          <SelectField
            id="change-tier"
            label={t('new.tier')}
            help={t('new.tierHelp')}
            path="spec.vgpu.tier"
            value={form.tier}
            onChange={(v) => edit.set('tier')(v as Tier)}
            options={tiers.map((tier) => [tier, t(`tier.${tier}`)])}
          />
        </>
      )}
      {resizes && (
        <>
          <CheckField
            id="change-queue"
            label={t('size.queue')}
            help={t('size.queueHelp')}
            path="spec.whenFull"
            checked={form.queue}
            onChange={edit.set('queue')}
          />
          <NewSize instance={instance} spec={spec} tried={tried} complete={complete} />
        </>
      )}
      <Same
        cli={asCommand(['instance', 'set', instance.meta.name], {
          name: meta.name === instance.meta.name ? undefined : meta.name,
          flavor: flavorName(form.flavor),
          'no-gpu': !form.vgpu && Boolean(instance.spec.vgpu),
          vram: spec.vgpu && sizeFlag(spec.vgpu.vramBytes),
          'gpu-share': spec.vgpu && form.share,
          'gpu-tier': spec.vgpu && form.tier,
          'gpu-pool': spec.vgpu && form.pool !== 'default' ? form.pool : undefined,
          cpu: spec.cpu ?? (instance.spec.cpu === 'host' ? 'baseline' : undefined),
          'cpu-policy': spec.cpuPolicy,
          'cpu-policy=': Boolean(instance.spec.cpuPolicy) && !spec.cpuPolicy,
          'huge-pages': spec.hugePages,
          'boot-from': spec.bootFrom ?? (instance.spec.bootFrom === 'medium' ? 'disk' : undefined),
          queue: resizes && form.queue,
          'huge-pages=': Boolean(instance.spec.hugePages) && !spec.hugePages,
        })}
        curl={edit.curl}
      />
    </FormDialog>
  );
}
