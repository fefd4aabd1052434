import {
  ActionGroup,
  Alert,
  Button,
  Card,
  CardBody,
  CardTitle,
  Checkbox,
  Form,
  FormFieldGroup,
  FormFieldGroupHeader,
  FormSelect,
  FormSelectOption,
  FormSelectOptionGroup,
  TextArea,
  TextInput,
} from '@patternfly/react-core';
import { FolderIcon } from '@patternfly/react-icons';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { useLocation } from 'wouter';
import { api, ok, type Schemas } from '../api/client';
import { elsewhere, useFieldErrors } from '../api/fields';
import { useSecurityGroups } from '../api/network';
import { useApps, useFlavors, useImages, useNetworks, usePools, usePriceBook } from '../api/queries';
import { may, type Session } from '../api/session';
import { expired, useSSHKeys } from '../api/ssh';
import { useText, type Key } from '../i18n';
import { command, curl } from '../lib/command';
import { gib, instanceOf, letsIn, missing, type Draft } from '../lib/draft';
import { formatBytes, formatMicros, formatPercent } from '../lib/format';
import { hourly, tiers, type HourlyPrice } from '../lib/price';
import { abilityOf, choose, imageOf, sourceOf } from '../lib/source';
import { Choices } from '../parts/choices';
import { ConsolePassword } from '../parts/console-password';
import { ErrorAlert } from '../parts/error';
import { Field } from '../parts/field';
import { Empty } from '../parts/list';
import { PageBody } from '../parts/page';
import { Copyable } from '../parts/copyable';
import { useProject } from '../parts/project';

/** The fields that show their own errors. */
const shown = [
  'meta.name',
  'meta.project',
  'spec.image',
  'spec.app',
  'spec.flavor',
  'spec.vgpu',
  'spec.networks',
  'spec.sshKeys',
  'spec.userData',
];

/** What the fields that have to be filled in are called. */
const labels: Record<ReturnType<typeof missing>[number], Key> = {
  'meta.name': 'new.name',
  'spec.image': 'new.source',
  'spec.flavor': 'new.flavor',
  'spec.vgpu.vramBytes': 'new.vram',
};

function Price({
  draft,
  flavor,
  image,
  organization,
}: {
  draft: Draft;
  flavor?: Schemas['Flavor'];
  image?: Schemas['Image'];
  organization?: string;
}) {
  const { t, language } = useText();
  const book = usePriceBook(organization);
  const [now] = useState(() => new Date());
  if (book.isError) return <p>{t('new.priceNone')}</p>;
  if (!flavor || !book.data) return <p className="basalt-note">{t('new.pickFlavor')}</p>;
  const vramBytes = draft.vgpu ? Math.max(0, Math.round(Number(draft.vramGib) * gib)) || 0 : 0;
  const share = Math.min(100, Math.max(0, Math.round(Number(draft.share)) || 0));
  const size = {
    vcpus: flavor.spec.vcpus,
    memoryBytes: flavor.spec.memoryBytes,
    rootBytes: flavor.spec.rootBytes || image?.status?.virtualBytes || 0,
    vramBytes,
    tier: draft.tier || 'standard',
    sharePercent: share,
    pool: draft.pool || 'default',
  };
  // Without a GPU an hour costs the same whatever is done in it.
  const ends = (vramBytes > 0 && share < 100 ? [share, 100] : [100]).map((percent) => ({
    percent,
    price: hourly(book.data.spec, size, percent, now),
  }));
  const rows: [string, 'compute' | 'disk' | 'vram' | 'gpu'][] = [
    [t('new.priceCompute'), 'compute'],
    [t('new.priceDisk'), 'disk'],
    ...(vramBytes > 0
      ? ([
          [t('new.priceVram'), 'vram'],
          [t('new.priceGpu'), 'gpu'],
        ] as [string, 'vram' | 'gpu'][])
      : []),
  ];
  const line = (name: keyof HourlyPrice) =>
    ends.map(({ percent, price }) => (
      <td key={percent}>
        {t('unit.perHour', { price: formatMicros(price[name], book.data.spec.currency, language) })}
      </td>
    ));
  return (
    <div className="basalt-stack">
      <table className="basalt-prices">
        {vramBytes > 0 && (
          <thead>
            <tr>
              <td />
              {ends.map(({ percent }) => (
                <th scope="col" key={percent}>
                  {t(percent < 100 ? 'new.priceAtShare' : 'new.priceAtFull', {
                    percent: formatPercent(percent, language),
                  })}
                </th>
              ))}
            </tr>
          </thead>
        )}
        <tbody>
          {rows.map(([what, name]) => (
            <tr key={name}>
              <th scope="row">{what}</th>
              {line(name)}
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">{t('new.priceTotal')}</th>
            {line('total')}
          </tr>
        </tfoot>
      </table>
      <p className="basalt-note">
        {t('new.priceHelp', { book: book.data.meta.name })}
        {vramBytes > 0 && ` ${t('new.priceGpuHelp')}`}
      </p>
    </div>
  );
}

/** What an app is, what it serves, and what to do once it runs. */
function About({ app }: { app: Schemas['App'] }) {
  const { t } = useText();
  const { description, ports, notes } = app.spec;
  return (
    <div className="basalt-stack">
      {description && <p>{description}</p>}
      {ports && ports.length > 0 && (
        <p>{t('new.appPorts', { ports: ports.map((p) => (p.name ? `${p.name} ${p.port}` : p.port)).join(', ') })}</p>
      )}
      {notes && <p className="basalt-lines">{notes}</p>}
    </div>
  );
}

/** Who may make a project is shown where; of an operator that is at its organization. */
function NoProject({ session }: { session: Session }) {
  const { t } = useText();
  const [, go] = useLocation();
  const admin = may(session, 'admin');
  return (
    <Empty
      title={t('new.noProject')}
      help={t(admin ? 'new.noProjectHelp' : 'new.noProjectAsk')}
      icon={FolderIcon}
      action={
        admin && (
          <Button onClick={() => go(session.organization ? '/projects' : '/organizations')}>{t('proj.create')}</Button>
        )
      }
    />
  );
}

export function CreateInstance({ session, id: fromApp }: { session: Session; id: string }) {
  const { t, count, language } = useText();
  const [, go] = useLocation();
  const { projects, project, loading } = useProject();
  const [draft, setDraft] = useState<Draft>({
    name: '',
    project: '',
    app: '',
    image: '',
    flavor: '',
    vgpu: false,
    pool: '',
    vramGib: '4',
    share: '25',
    tier: '',
    networks: [],
    groups: [],
    keys: '',
    userData: '',
    password: '',
  });
  const set =
    <K extends keyof Draft>(name: K) =>
    (_: unknown, value: Draft[K]) =>
      setDraft((d) => ({ ...d, [name]: value }));
  const inProject = draft.project || project || projects[0]?.meta.id || '';
  const projectObject = projects.find((p) => p.meta.id === inProject);
  const apps = useApps();
  const catalogue = apps.data?.items.filter((a) => !a.meta.deletedAt) ?? [];
  const app = catalogue.find((a) => a.meta.name === draft.app);
  const flavors = useFlavors();
  const images = useImages(inProject);
  const pools = usePools();
  const networks = useNetworks(inProject);
  // Where one comes from an app's card.
  const [given, setGiven] = useState(fromApp);
  if (given && apps.data) {
    setGiven('');
    setDraft((d) => choose(d, `app:${decodeURIComponent(given)}`, catalogue));
  }
  // The user's own SSH keys are given to it, by name, unless he says otherwise.
  const own = useSSHKeys();
  const [filled, setFilled] = useState(false);
  if (!filled && own.data) {
    setFilled(true);
    const names = own.data.items.filter((k) => !expired(k)).map((k) => k.meta.name);
    setDraft((d) => ({ ...d, keys: d.keys || names.join('\n') }));
  }
  const [attempt] = useState(() => crypto.randomUUID?.() ?? String(Math.random()));
  const wanted = instanceOf({ ...draft, project: inProject }, app?.spec.userData);
  // Names say more than ids to who reads the command.
  const readable = instanceOf({ ...draft, project: projectObject?.meta.name ?? inProject }, app?.spec.userData);
  const create = useMutation({
    mutationFn: () =>
      ok(
        api.POST('/v1/instances', {
          params: { header: { 'Idempotency-Key': `${attempt}-${JSON.stringify(wanted).length}-${wanted.meta.name}` } },
          body: wanted,
        }),
      ),
    onSuccess: (i) => go(`/instances/${i.meta.id}`),
  });
  const errors = useFieldErrors(create.error);
  // From the first press on, what is missing is named, and that nobody can log in is said before it is created.
  const [pressed, setPressed] = useState(false);
  const lacks = pressed ? missing(draft) : [];
  const lack = (path: keyof typeof labels) => (lacks.includes(path) ? t('new.missing') : undefined);
  const open = letsIn(wanted, app?.spec.userData);
  const shut = pressed && lacks.length === 0 && !open;
  const submit = () => {
    setPressed(true);
    if (missing(draft).length === 0 && (open || shut) && !create.isPending) create.mutate();
  };
  const groups = useSecurityGroups({ project: inProject, limit: 1000 });
  const toggled = (all: string[], name: string, on: boolean) => (on ? [...all, name] : all.filter((x) => x !== name));
  const above = { href: '/instances', title: t('inst.title') };
  const usable = images.data?.items.filter((i) => !i.meta.deletedAt) ?? [];
  const image = app ? imageOf(app, usable) : usable.find((i) => i.meta.name === draft.image);
  const inability = draft.vgpu ? abilityOf(app, image) : undefined;
  if (!loading && projects.length === 0)
    return (
      <PageBody title={t('new.title')} above={above}>
        <NoProject session={session} />
      </PageBody>
    );
  return (
    <PageBody title={t('new.title')} above={above}>
      <div className="basalt-split">
        <Card>
          <CardBody>
            <Form onSubmit={(e) => (e.preventDefault(), submit())} aria-label={t('new.title')}>
              <ErrorAlert error={elsewhere(create.error, shown) ?? flavors.error ?? images.error ?? apps.error} />
              {!session.project && projects.length > 1 && (
                <Field id="new-project" label={t('new.project')} path="meta.project" errors={errors} required>
                  <FormSelect id="new-project" value={inProject} onChange={set('project')}>
                    {projects.map((p) => (
                      <FormSelectOption key={p.meta.id} value={p.meta.id} label={p.spec.displayName || p.meta.name} />
                    ))}
                  </FormSelect>
                </Field>
              )}
              <Field
                id="new-name"
                label={t('new.name')}
                help={t('new.nameHelp')}
                path="meta.name"
                error={lack('meta.name')}
                errors={errors}
                required
              >
                <TextInput
                  id="new-name"
                  value={draft.name}
                  onChange={set('name')}
                  isRequired
                  autoComplete="off"
                  spellCheck={false}
                />
              </Field>
              {images.data && usable.length === 0 && (
                <Alert component="p" variant="info" isInline title={t('new.noImage')} />
              )}
              <Field
                id="new-image"
                label={t('new.source')}
                path={draft.app ? 'spec.app' : 'spec.image'}
                error={lack('spec.image')}
                errors={errors}
                required
              >
                <FormSelect
                  id="new-image"
                  value={sourceOf(draft)}
                  onChange={(_, source) => setDraft((d) => choose(d, source, catalogue))}
                  isRequired
                >
                  <FormSelectOption value="" label={t('new.choose')} isPlaceholder />
                  <FormSelectOptionGroup label={t('new.images')}>
                    {usable.map((i) => (
                      <FormSelectOption key={i.meta.id} value={`image:${i.meta.name}`} label={i.meta.name} />
                    ))}
                  </FormSelectOptionGroup>
                  <FormSelectOptionGroup label={t('new.apps')}>
                    {catalogue.map((a) => {
                      const there = imageOf(a, usable) !== undefined;
                      return (
                        <FormSelectOption
                          key={a.meta.id}
                          value={`app:${a.meta.name}`}
                          isDisabled={!there}
                          label={
                            there
                              ? a.spec.displayName
                              : t('new.appNoImage', { app: a.spec.displayName, image: a.spec.image })
                          }
                        />
                      );
                    })}
                  </FormSelectOptionGroup>
                </FormSelect>
              </Field>
              {app && <About app={app} />}
              <Field
                id="new-flavor"
                label={t('new.flavor')}
                path="spec.flavor"
                error={lack('spec.flavor')}
                errors={errors}
                required
              >
                <FormSelect id="new-flavor" value={draft.flavor} onChange={set('flavor')} isRequired>
                  <FormSelectOption value="" label={t('new.choose')} isPlaceholder />
                  {flavors.data?.items.map((f) => (
                    <FormSelectOption
                      key={f.meta.id}
                      value={f.meta.name}
                      label={`${f.meta.name}: ${count('inst.vcpus', f.spec.vcpus)}, ${formatBytes(f.spec.memoryBytes, language)}`}
                    />
                  ))}
                </FormSelect>
              </Field>
              <FormFieldGroup
                header={<FormFieldGroupHeader titleText={{ text: t('new.vgpu'), id: 'new-vgpu-title' }} />}
              >
                <Checkbox id="new-vgpu" label={t('new.wantVgpu')} isChecked={draft.vgpu} onChange={set('vgpu')} />
                {inability && (
                  <Alert
                    component="p"
                    variant="warning"
                    isInline
                    title={t(inability === 'unsupported' ? 'new.vgpuUnsupported' : 'new.vgpuNewKernel')}
                  >
                    {t(inability === 'unsupported' ? 'new.vgpuUnsupportedHelp' : 'new.vgpuNewKernelHelp')}
                  </Alert>
                )}
                {draft.vgpu && (
                  <>
                    {(pools.data?.items.length ?? 0) > 1 && (
                      <Field id="new-pool" label={t('new.pool')} path="spec.vgpu.pool" errors={errors}>
                        <FormSelect id="new-pool" value={draft.pool} onChange={set('pool')}>
                          {pools.data?.items.map((p) => (
                            <FormSelectOption
                              key={p.meta.id}
                              value={p.meta.name === 'default' ? '' : p.meta.name}
                              label={p.meta.name}
                            />
                          ))}
                        </FormSelect>
                      </Field>
                    )}
                    <Field
                      id="new-vram"
                      label={t('new.vram')}
                      path="spec.vgpu.vramBytes"
                      error={lack('spec.vgpu.vramBytes')}
                      errors={errors}
                      required
                    >
                      <TextInput
                        id="new-vram"
                        type="number"
                        min={0.0625}
                        max={1024}
                        step="any"
                        isRequired
                        value={draft.vramGib}
                        onChange={set('vramGib')}
                      />
                    </Field>
                    <Field
                      id="new-share"
                      label={t('new.share')}
                      help={t('new.shareHelp')}
                      path="spec.vgpu.sharePercent"
                      errors={errors}
                    >
                      <TextInput
                        id="new-share"
                        type="number"
                        min={0}
                        max={100}
                        step={1}
                        isRequired
                        value={draft.share}
                        onChange={set('share')}
                      />
                    </Field>
                    <Field
                      id="new-tier"
                      label={t('new.tier')}
                      help={t('new.tierHelp')}
                      path="spec.vgpu.tier"
                      errors={errors}
                    >
                      <FormSelect
                        id="new-tier"
                        value={draft.tier}
                        onChange={(_, tier) => setDraft((d) => ({ ...d, tier: tier as Draft['tier'] }))}
                      >
                        {tiers.map((tier) => (
                          <FormSelectOption
                            key={tier}
                            value={tier === 'standard' ? '' : tier}
                            label={t(`tier.${tier}`)}
                          />
                        ))}
                      </FormSelect>
                    </Field>
                  </>
                )}
              </FormFieldGroup>
              <Choices
                id="new-networks"
                label={t('new.networks')}
                help={t('new.networkDefault')}
                path="spec.networks"
                errors={errors}
                items={networks.data?.items ?? []}
                chosen={draft.networks}
                set={(name, on) => setDraft((d) => ({ ...d, networks: toggled(d.networks, name, on) }))}
                note={(n) => n.spec.cidr4 ?? n.spec.cidr6 ?? ''}
              />
              <Choices
                id="new-groups"
                label={t('new.groups')}
                help={t('new.groupsHelp')}
                path="spec.networks[0].securityGroups"
                errors={errors}
                items={groups.data?.items ?? []}
                chosen={draft.groups}
                set={(name, on) => setDraft((d) => ({ ...d, groups: toggled(d.groups, name, on) }))}
              />
              <Field id="new-keys" label={t('new.keys')} help={t('new.keysHelp')} path="spec.sshKeys" errors={errors}>
                <TextArea
                  id="new-keys"
                  rows={2}
                  resizeOrientation="vertical"
                  value={draft.keys}
                  onChange={set('keys')}
                  spellCheck={false}
                />
              </Field>
              <ConsolePassword
                value={draft.password}
                set={(password) => setDraft((d) => ({ ...d, password }))}
                userData={draft.userData || app?.spec.userData || ''}
              />
              <Field
                id="new-user-data"
                label={t('new.userData')}
                help={app?.spec.userData ? t('new.userDataApp') : undefined}
                path="spec.userData"
                errors={errors}
              >
                <TextArea
                  id="new-user-data"
                  rows={3}
                  resizeOrientation="vertical"
                  value={draft.userData}
                  onChange={set('userData')}
                  spellCheck={false}
                />
              </Field>
              {lacks.length > 0 && (
                <Alert
                  component="p"
                  variant="danger"
                  isInline
                  isLiveRegion
                  title={t('new.missingAll', { fields: lacks.map((path) => t(labels[path])).join(', ') })}
                />
              )}
              {shut && (
                <Alert component="p" variant="warning" isInline isLiveRegion title={t('new.noLogin')}>
                  {t('new.noLoginHelp')}
                </Alert>
              )}
              <ActionGroup>
                <Button type="submit" isLoading={create.isPending} isDisabled={create.isPending}>
                  {t(shut ? 'new.submitShut' : 'new.submit')}
                </Button>
                <Button variant="link" onClick={() => go('/instances')}>
                  {t('common.cancel')}
                </Button>
              </ActionGroup>
            </Form>
          </CardBody>
        </Card>
        <div className="basalt-stack">
          <Card>
            <CardTitle component="h2">{t('new.price')}</CardTitle>
            <CardBody aria-live="polite">
              <Price
                draft={draft}
                flavor={flavors.data?.items.find((f) => f.meta.name === draft.flavor)}
                image={image}
                organization={projectObject?.meta.organization ?? session.organization}
              />
            </CardBody>
          </Card>
          <Card>
            <CardTitle component="h2">{t('new.same')}</CardTitle>
            <CardBody className="basalt-stack">
              <p className="basalt-note">{t('new.sameHelp')}</p>
              <Copyable label={t('new.cli')} text={command(readable)} />
              <Copyable label={t('new.curl')} text={curl(readable, location.origin)} />
            </CardBody>
          </Card>
        </div>
      </div>
    </PageBody>
  );
}
