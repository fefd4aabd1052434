// Imports an image: a local file, with progress and a cancel button, or a URL that a node downloads.
import {
  ExpandableSection,
  FileUpload,
  FormSelect,
  FormSelectOption,
  Progress,
  Radio,
  TextInput,
} from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { api, ok, type Schemas } from '../api/client';
import { may, type Session } from '../api/session';
import { formatOf, send, type Sending } from '../api/upload';
import { useText } from '../i18n';
import { formatBytes } from '../lib/format';
import { asCommand, asCurl } from '../lib/shell';
import { CheckField } from '../parts/check-field';
import { describedBy, Field } from '../parts/field';
import { FormDialog } from '../parts/form-dialog';
import { Same } from '../parts/same';
import { useProject } from '../parts/project';
import { abilitiesOf, AbilityFields, abilityFlags, abilitySpec } from './image-abilities';

type Image = Schemas['Image'];
type Format = Image['spec']['format'];

/** formatAt returns the format of a URL by its file extension. */
const formatAt = (url: string): Format => (/\.iso$/i.test(url) ? 'iso' : /\.(raw|dd)$/i.test(url) ? 'raw' : 'qcow2');

/** useImportImage creates an image for all projects, which the cluster downloads. */
export function useImportImage() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ name, url }: { name: string; url: string }) =>
      ok(
        api.POST('/v1/images', {
          body: { kind: 'Image', meta: { name }, spec: { format: formatAt(url), url, public: true } },
        }),
      ),
    onSuccess: () => client.invalidateQueries({ queryKey: ['Image', 'list'] }),
  });
}

interface Props {
  session: Session;
  /** For all projects unless one is chosen; otherwise for the current project. */
  everybody?: boolean;
  /** Initial name of the form. */
  name?: string;
  url?: string;
  onClose: () => void;
}

const aborted = (e: unknown) => e instanceof DOMException && e.name === 'AbortError';

export function AddImage({ session, everybody, name = '', url = '', onClose }: Props) {
  const { t, language } = useText();
  const client = useQueryClient();
  const { projects, project } = useProject();
  const operator = may(session, 'operator');
  const [form, setForm] = useState({
    name,
    url,
    sha256: '',
    format: formatAt(url),
    project: everybody ? '' : project || (operator ? '' : (projects[0]?.meta.id ?? '')),
    fromUrl: url !== '',
    public: false,
    ...abilitiesOf(undefined),
  });
  const [file, setFile] = useState<File | null>(null);
  const [sent, setSent] = useState(0);
  const sending = useRef<Sending | null>(null);
  const set = (field: keyof typeof form) => (_: unknown, v: string | boolean) => setForm((f) => ({ ...f, [field]: v }));
  const body: Image = {
    kind: 'Image',
    meta: { name: form.name.trim(), ...(form.project && { project: form.project }) },
    spec: {
      format: form.format,
      ...(form.fromUrl && { url: form.url.trim() }),
      ...(form.sha256 && { sha256: form.sha256.trim().toLowerCase() }),
      ...((form.public || !form.project) && { public: true }),
      ...abilitySpec(form),
    },
  };
  const save = useMutation({
    mutationFn: async () => {
      if (form.fromUrl) return void (await ok(api.POST('/v1/images', { body })));
      if (!file) return;
      setSent(0);
      sending.current = send(body, file, setSent);
      try {
        await sending.current.done;
      } finally {
        sending.current = null;
      }
    },
    onSuccess: onClose,
    onSettled: () => client.invalidateQueries({ queryKey: ['Image', 'list'] }),
  });
  const busy = save.isPending;
  useEffect(() => {
    if (!busy || form.fromUrl) return;
    const ask = (e: BeforeUnloadEvent) => e.preventDefault();
    window.addEventListener('beforeunload', ask);
    return () => window.removeEventListener('beforeunload', ask);
  }, [busy, form.fromUrl]);
  useEffect(() => () => sending.current?.cancel(), []); // when the page is closed
  const choose = async (f: File) => {
    setFile(f);
    const format = await formatOf(f);
    setForm((old) => ({
      ...old,
      format,
      name:
        old.name ||
        f.name
          .toLowerCase()
          .replace(/\.[^.]*$/, '')
          .replaceAll(/[^a-z0-9]+/g, '-')
          .replaceAll(/^-+|-+$/g, '')
          .slice(0, 63),
    }));
  };
  const progress =
    file && file.size > 0
      ? t('gpu.vramOf', { used: formatBytes(sent, language), all: formatBytes(file.size, language) })
      : '';
  const close = () => (sending.current ? sending.current.cancel() : onClose());
  return (
    <FormDialog
      title={t('img.add')}
      action={t('img.bring')}
      busy={busy}
      error={aborted(save.error) ? null : save.error}
      schema="Image"
      body={body}
      wide
      disabled={!form.fromUrl && !file}
      onSubmit={save.mutate}
      onClose={close}
    >
      <div role="radiogroup" aria-label={t('img.from')}>
        <Radio
          id="image-file"
          name="image-from"
          label={t('img.fromFile')}
          isChecked={!form.fromUrl}
          isDisabled={busy}
          onChange={() => set('fromUrl')(null, false)}
        />
        <Radio
          id="image-url"
          name="image-from"
          label={t('img.fromUrl')}
          isChecked={form.fromUrl}
          isDisabled={busy}
          onChange={() => set('fromUrl')(null, true)}
        />
      </div>
      {form.fromUrl ? (
        <Field id="image-address" label={t('img.url')} path="spec.url" required>
          <TextInput
            id="image-address"
            type="url"
            value={form.url}
            onChange={(_, v) => setForm((f) => ({ ...f, url: v, format: formatAt(v.trim()) }))}
            isRequired
          />
        </Field>
      ) : (
        <Field id="image-content" label={t('img.file')} help={t('img.fileHelp')} required>
          <FileUpload
            id="image-content"
            filename={file ? `${file.name}, ${formatBytes(file.size, language)}` : ''}
            filenamePlaceholder={t('img.drop')}
            filenameAriaLabel={t('img.file')}
            browseButtonText={t('img.choose')}
            browseButtonAriaDescribedby={describedBy('image-content')}
            clearButtonText={t('img.clear')}
            hideDefaultPreview
            isDisabled={busy}
            onFileInputChange={(_, f) => void choose(f)}
            onClearClick={() => setFile(null)}
          />
        </Field>
      )}
      <Field id="image-name" label={t('common.name')} path="meta.name" required>
        <TextInput
          id="image-name"
          value={form.name}
          onChange={set('name')}
          isRequired
          autoComplete="off"
          spellCheck={false}
        />
      </Field>
      <Field id="image-format" label={t('img.format')} help={t('img.formatHelp')} path="spec.format">
        <FormSelect id="image-format" value={form.format} onChange={set('format')}>
          <FormSelectOption value="qcow2" label="qcow2" />
          <FormSelectOption value="raw" label="raw" />
          <FormSelectOption value="iso" label={t('img.iso')} />
        </FormSelect>
      </Field>
      <Field id="image-sum" label={t('img.sha256')} help={t('img.sha256Help')} path="spec.sha256">
        <TextInput id="image-sum" value={form.sha256} onChange={set('sha256')} autoComplete="off" spellCheck={false} />
      </Field>
      <ExpandableSection toggleText={t('img.about')}>
        <div className="basalt-stack">
          <AbilityFields form={form} set={(field, v) => set(field)(null, v)} />
        </div>
      </ExpandableSection>
      {(operator || projects.length > 1) && (
        <Field id="image-project" label={t('common.project')} path="meta.project">
          <FormSelect id="image-project" value={form.project} onChange={set('project')}>
            {operator && <FormSelectOption value="" label={t('img.cluster')} />}
            {projects.map((p) => (
              <FormSelectOption key={p.meta.id} value={p.meta.id} label={p.meta.name} />
            ))}
          </FormSelect>
        </Field>
      )}
      {operator && form.project && (
        <CheckField
          id="image-public"
          label={t('img.publish')}
          path="spec.public"
          checked={form.public}
          onChange={(v) => set('public')(null, v)}
        />
      )}
      {busy && !form.fromUrl && (
        <Progress
          id="image-progress"
          title={t('img.sending')}
          value={file && file.size > 0 ? (100 * sent) / file.size : 0}
          label={progress}
          valueText={progress}
          size="sm"
        />
      )}
      <Same
        cli={asCommand(['image', 'import', form.name || 'NAME'], {
          ...(form.fromUrl ? { url: form.url || 'URL' } : { file: file?.name ?? 'FILE' }),
          ...(form.format === 'iso' && { format: 'iso' }),
          project: form.project,
          public: form.public || !form.project,
          ...abilityFlags(body.spec),
        })}
        curl={
          asCurl('POST', `/v1/images`, body) +
          (form.fromUrl
            ? ''
            : `\ncurl -X PUT ${location.origin}/v1/images/ID/content \\\n  -H "Authorization: Bearer $BASALT_TOKEN" \\\n  -H 'Content-Type: application/octet-stream' \\\n  --upload-file ${file?.name ?? 'FILE'}`)
        }
      />
    </FormDialog>
  );
}
