import {
  ActionGroup,
  Alert,
  Button,
  Card,
  CardBody,
  CardTitle,
  ExpandableSection,
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
import { atField } from '../api/fields';
import { useSecurityGroups } from '../api/network';
import { useDryRun, useOffers, useSettled } from '../api/offers';
import { useApps, useFlavors, useImages, useNetworks } from '../api/queries';
import { may, type Session } from '../api/session';
import { expired, useSSHKeys } from '../api/ssh';
import { useText } from '../i18n';
import { told } from '../lib/cause';
import { command, curl } from '../lib/command';
import { gib, instanceOf, letsIn, missing, type Draft } from '../lib/draft';
import { formatBytes } from '../lib/format';
import { policyIn, usualMachine } from '../lib/machine';
import { asked, renamed, usualImage } from '../lib/new-instance';
import { firstSlice, fitting, isOf, kindsOf, take, vramOf } from '../lib/offer';
import { suffix } from '../lib/password';
import { abilityOf, choose, imageOf, isMedium, smallest, sourceOf, systemOf } from '../lib/source';
import { CheckGroup } from '../parts/check-group';
import { ConsolePassword } from '../parts/console-password';
import { ErrorAlert } from '../parts/error';
import { Field } from '../parts/field';
import { Empty } from '../parts/list';
import { Form } from '../parts/form';
import { PageBody } from '../parts/page';
import { Copyable } from '../parts/copyable';
import { useProject } from '../parts/project';
import { StoragePoolField } from '../parts/storage-pool-field';
import { useTell } from '../parts/told';
import { UsualWait } from '../parts/queue';
import { Gpu } from './create/gpu';
import { OwnSlice } from './create/gpu-own';
import { MachineFields } from './create/machine';
import { MediumFields } from './create/medium';
import { Price } from './create/price';
import { WhenFullFields } from './create/when-full';

const noKey = 'no-ssh-key'; // the code of a warning

/** About describes an app, what it serves, and what to do once it runs. */
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

/** NoProject links to where the user can create a project; for operators, at its organization. */
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

export function CreateInstance({ session, id: fromLink }: { session: Session; id: string }) {
  const { t, count, language } = useText();
  const tell = useTell();
  const [, go] = useLocation();
  const { projects, project, loading } = useProject();
  const [ownSuffix] = useState(suffix);
  const [draft, setDraft] = useState<Draft>({
    name: '',
    project: '',
    app: '',
    image: '',
    medium: '',
    second: '',
    rootGib: '',
    flavor: '',
    vgpu: false,
    pool: '',
    model: '',
    vramGib: '4',
    share: '25',
    tier: '',
    networks: [],
    groups: [],
    keys: '',
    userData: '',
    password: '',
    machine: usualMachine,
    storagePool: '',
    whenFull: 'queue',
    until: '',
  });
  const set =
    <K extends keyof Draft>(name: K) =>
    (_: unknown, value: Draft[K]) =>
      setDraft((d) => ({ ...d, [name]: value }));
  const sized = (name: string) => {
    const spec = flavors.data?.items.find((f) => f.meta.name === name)?.spec;
    const machine = (m: Draft['machine']) => ({ ...m, cpuPolicy: policyIn(m.cpuPolicy, spec) });
    setDraft((d) => ({ ...d, flavor: name, machine: machine(d.machine) }));
  };
  const inProject = draft.project || project || projects[0]?.meta.id || '';
  const projectObject = projects.find((p) => p.meta.id === inProject);
  const apps = useApps();
  const catalogue = apps.data?.items.filter((a) => !a.meta.deletedAt) ?? [];
  const app = catalogue.find((a) => a.meta.name === draft.app);
  const flavors = useFlavors();
  const images = useImages(inProject);
  const networks = useNetworks(inProject);
  // The smallest flavor is the initial choice.
  const usualFlavor = smallest(flavors.data?.items ?? [])?.meta.name;
  if (!draft.flavor && usualFlavor) setDraft((d) => ({ ...d, flavor: usualFlavor }));
  const usable = images.data?.items.filter((i) => !i.meta.deletedAt) ?? [];
  const disks = usable.filter((i) => !isMedium(i));
  const media = usable.filter(isMedium);
  const image = app
    ? imageOf(app, disks)
    : draft.medium
      ? media.find((i) => i.meta.name === draft.medium)
      : disks.find((i) => i.meta.name === draft.image);
  const flavor = flavors.data?.items.find((f) => f.meta.name === draft.flavor);
  const ofInstance = {
    project: inProject,
    flavor: draft.flavor,
    rootBytes: draft.medium
      ? Math.round((Number(draft.rootGib) || 0) * gib)
      : flavor?.spec.rootBytes
        ? 0
        : (image?.status?.virtualBytes ?? 0),
  };
  const all = useOffers(ofInstance);
  const offers = all.data?.items ?? [];
  const listed = offers.find((o) => isOf(draft, o));
  // A slice of a custom size is not among the usual offers.
  const measure = useSettled(
    JSON.stringify({
      vramBytes: vramOf(draft),
      sharePercent: Number(draft.share) || 0,
      tier: draft.tier || 'standard',
      pool: draft.pool || 'default',
      ...(draft.model && { model: draft.model }),
    }),
    300,
  );
  const special = useOffers(
    { ...ofInstance, ...(JSON.parse(measure) as object) },
    all.isSuccess && draft.vgpu && !listed && vramOf(draft) > 0,
  );
  const offer = listed ?? (draft.vgpu ? special.data?.items[0] : undefined);
  const chosen = (d: Draft, source: string): Draft => {
    const next = choose(d, source, catalogue, flavors.data?.items);
    const fits = next.vgpu && !next.model ? fitting(offers, vramOf(next)) : undefined;
    return renamed(d, fits ? take(next, fits) : next, ownSuffix);
  };
  // The app or the GPU of the link, and an image, are chosen once all choices are known.
  const [begun, setBegun] = useState(false);
  if (!begun && apps.data && images.data && flavors.isFetched && (all.isFetched || all.isError)) {
    setBegun(true);
    const link = asked(fromLink);
    const kind = kindsOf(offers, 'standard').find((k) => k.pool === link.gpu?.pool && k.model === link.gpu.model);
    const usual = usualImage(usable);
    const fits = smallest(flavors.data?.items ?? [], usual)?.meta.name;
    setDraft((d) => {
      const first = !link.app && !sourceOf(d) && usual;
      const next = link.app ? chosen(d, `app:${link.app}`) : first ? chosen(d, `image:${usual.meta.name}`) : d;
      const sized = first && fits && d.flavor === usualFlavor ? { ...next, flavor: fits } : next;
      return kind ? take(sized, firstSlice(kind)) : sized;
    });
  }
  // The user's own SSH keys are added by name, unless the user removes them.
  const own = useSSHKeys();
  const [filled, setFilled] = useState(false);
  if (!filled && own.data) {
    setFilled(true);
    const names = own.data.items.filter((k) => !expired(k)).map((k) => k.meta.name);
    setDraft((d) => ({ ...d, keys: d.keys || names.join('\n') }));
  }
  const [attempt] = useState(() => crypto.randomUUID?.() ?? String(Math.random()));
  const wanted = instanceOf({ ...draft, project: inProject }, app?.spec.userData);
  // Names are easier to read in the command than IDs.
  const readable = instanceOf({ ...draft, project: projectObject?.meta.name ?? inProject }, app?.spec.userData);
  // Whether the form has warned that nobody could sign in.
  const [warned, setWarned] = useState(false);
  const create = useMutation({
    mutationFn: async () => {
      if (!letsIn(wanted, app?.spec.userData) && !shut) {
        // Only the server knows whether the SSH gateway signs in.
        const dry = await ok(api.POST('/v1/instances', { params: { query: { dryRun: 'all' } }, body: wanted }));
        if (dry.warnings?.some((w) => w.code === noKey)) return setWarned(true);
      }
      return ok(
        api.POST('/v1/instances', {
          params: { header: { 'Idempotency-Key': `${attempt}-${JSON.stringify(wanted).length}-${wanted.meta.name}` } },
          body: wanted,
        }),
      );
    },
    onSuccess: (i) => i && go(`/instances/${i.meta.id}`),
  });
  const body = JSON.stringify(wanted);
  const settled = useSettled(body, 600);
  const tried = useDryRun(settled, settled === body && missing(draft).length === 0 && !create.isPending);
  const full = tried.warnings.includes('no-room-now');
  const entry = letsIn(wanted, app?.spec.userData) || (tried.done && !tried.warnings.includes(noKey));
  const shut = warned && !entry;
  const [advanced, setAdvanced] = useState(false);
  const inAdvanced = [
    'spec.vgpu.tier',
    'spec.vgpu.vramBytes',
    'spec.vgpu.sharePercent',
    'spec.networks',
    'spec.userData',
    'spec.storagePool',
    'spec.cpuPolicy',
    'spec.cpu',
    'spec.hugePages',
    'spec.os',
    'spec.firmware',
    'spec.secureBoot',
    'spec.tpm',
  ];
  const hidden = inAdvanced.some((path) => atField(create.error ?? tried.error, path) !== undefined);
  const groups = useSecurityGroups({ project: inProject, limit: 1000 });
  const above = { href: '/instances', title: t('inst.title') };
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
            <Form
              label={t('new.title')}
              long
              schema="Instance"
              body={wanted}
              busy={create.isPending}
              error={create.error}
              live={tried.error}
              onSubmit={() => create.mutate()}
            >
              <ErrorAlert error={flavors.error ?? images.error ?? apps.error} />
              <Gpu offers={offers} draft={draft} set={setDraft} />
              {!session.project && projects.length > 1 && (
                <Field id="new-project" label={t('new.project')} path="meta.project" required>
                  <FormSelect id="new-project" value={inProject} onChange={set('project')}>
                    {projects.map((p) => (
                      <FormSelectOption key={p.meta.id} value={p.meta.id} label={p.spec.displayName || p.meta.name} />
                    ))}
                  </FormSelect>
                </Field>
              )}
              {images.data && usable.length === 0 && (
                <Alert component="p" variant="info" isInline title={t('new.noImage')} />
              )}
              <Field
                id="new-image"
                label={t('new.source')}
                path={draft.app ? 'spec.app' : draft.medium ? 'spec.media' : 'spec.image'}
                required
              >
                <FormSelect
                  id="new-image"
                  value={sourceOf(draft)}
                  onChange={(_, source) => setDraft((d) => chosen(d, source))}
                  isRequired
                >
                  <FormSelectOption value="" label={t('new.choose')} isPlaceholder />
                  <FormSelectOptionGroup label={t('new.images')}>
                    {disks.map((i) => (
                      <FormSelectOption key={i.meta.id} value={`image:${i.meta.name}`} label={i.meta.name} />
                    ))}
                  </FormSelectOptionGroup>
                  {media.length > 0 && (
                    <FormSelectOptionGroup label={t('new.media')}>
                      {media.map((i) => (
                        <FormSelectOption key={i.meta.id} value={`medium:${i.meta.name}`} label={i.meta.name} />
                      ))}
                    </FormSelectOptionGroup>
                  )}
                  <FormSelectOptionGroup label={t('new.apps')}>
                    {catalogue.map((a) => {
                      const there = imageOf(a, disks) !== undefined;
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
              {draft.medium && <MediumFields draft={draft} set={setDraft} media={media} />}
              <Field id="new-name" label={t('new.name')} help={t('new.nameHelp')} path="meta.name" required>
                <TextInput
                  id="new-name"
                  value={draft.name}
                  onChange={set('name')}
                  isRequired
                  autoComplete="off"
                  spellCheck={false}
                />
              </Field>
              <Field id="new-flavor" label={t('new.flavor')} path="spec.flavor" required>
                <FormSelect id="new-flavor" value={draft.flavor} onChange={(_, v) => sized(v)} isRequired>
                  <FormSelectOption value="" label={t('new.choose')} isPlaceholder />
                  {flavors.data?.items.map((f) => (
                    <FormSelectOption
                      key={f.meta.id}
                      value={f.meta.name}
                      label={[
                        `${f.meta.name}: ${count('inst.vcpus', f.spec.vcpus)}`,
                        formatBytes(f.spec.memoryBytes, language),
                        ...(f.spec.cpuPolicy === 'dedicated' ? [t('mach.policy.dedicated')] : []),
                      ].join(', ')}
                    />
                  ))}
                </FormSelect>
              </Field>
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
              <Field id="new-keys" label={t('new.keys')} help={t('new.keysHelp')} path="spec.sshKeys">
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
              <ExpandableSection
                toggleText={t('new.advanced')}
                isExpanded={advanced || hidden}
                onToggle={(_, on) => setAdvanced(on)}
                isIndented
              >
                <div className="basalt-stack">
                  {draft.vgpu && <OwnSlice draft={draft} set={setDraft} />}
                  <CheckGroup
                    id="new-networks"
                    label={t('new.networks')}
                    help={t('new.networkDefault')}
                    path="spec.networks"
                    options={(networks.data?.items ?? []).map(({ meta, spec }) => ({
                      value: meta.name,
                      label: meta.name,
                      note: spec.cidr4 ?? spec.cidr6,
                    }))}
                    chosen={draft.networks}
                    set={(names) => setDraft((d) => ({ ...d, networks: names }))}
                  />
                  <CheckGroup
                    id="new-groups"
                    label={t('new.groups')}
                    help={t('new.groupsHelp')}
                    path="spec.networks[0].securityGroups"
                    options={(groups.data?.items ?? []).map(({ meta }) => ({ value: meta.name, label: meta.name }))}
                    chosen={draft.groups}
                    set={(names) => setDraft((d) => ({ ...d, groups: names }))}
                  />
                  <Field
                    id="new-user-data"
                    label={t('new.userData')}
                    help={app?.spec.userData ? t('new.userDataApp') : undefined}
                    path="spec.userData"
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
                  <StoragePoolField
                    id="new-storage-pool"
                    label={t('new.storagePool')}
                    path="spec.storagePool"
                    value={draft.storagePool}
                    onChange={(v) => set('storagePool')(null, v)}
                  />
                  <MachineFields
                    machine={draft.machine}
                    set={(machine) => setDraft((d) => ({ ...d, machine }))}
                    flavor={flavor?.spec}
                    vgpu={draft.vgpu}
                    os={systemOf(app, image)}
                  />
                </div>
              </ExpandableSection>
              <WhenFullFields draft={draft} set={setDraft} />
              {full && (
                <Alert component="p" variant="info" isInline isLiveRegion title={t('new.noRoom')}>
                  {tried.noRoom && `${tell(told(tried.noRoom.text, tried.noRoom.cause))} `}
                  {t('new.noRoomHelp')}
                  {tried.queue && (
                    <>
                      {' '}
                      {t('queue.would', { position: tried.queue.position, length: tried.queue.length })}{' '}
                      <UsualWait queue={tried.queue} />
                    </>
                  )}
                </Alert>
              )}
              {shut && (
                <Alert component="p" variant="warning" isInline isLiveRegion title={t('new.noLogin')}>
                  {t('new.noLoginHelp')}
                </Alert>
              )}
              <ActionGroup>
                <Button type="submit" isLoading={create.isPending} isDisabled={create.isPending}>
                  {t(shut ? 'new.submitShut' : full ? 'new.submitQueue' : 'new.submit')}
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
              <ErrorAlert error={all.error ?? special.error} />
              <Price offer={offer} />
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
