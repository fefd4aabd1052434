// An image for all projects: from an address, or a file of the browser's machine.
import { Button, Form, Progress } from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { api, ok, type Schemas } from '../api/client';
import { atField, elsewhere } from '../api/fields';
import { send } from '../api/upload';
import { useText } from '../i18n';
import { formatBytes } from '../lib/format';
import { asCurl, quote } from '../lib/shell';
import { ErrorAlert } from '../parts/error';
import { Same } from '../parts/same';
import { SelectField, TextField } from '../parts/text-field';

type Image = Schemas['Image'];
type Format = Image['spec']['format'];

const shown = ['meta.name', 'spec.url', 'spec.format', 'spec.sha256'];
const formatOf = (name: string): Format => (/\.(raw|dd)$/i.test(name) ? 'raw' : 'qcow2');

/** useImportImage makes one that the cluster fetches. */
export function useImportImage() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ name, url }: { name: string; url: string }) => ok(api.POST('/v1/images', { body: { kind: 'Image', meta: { name }, spec: { format: formatOf(url), url, public: true } } })),
    onSuccess: () => client.invalidateQueries({ queryKey: ['Image', 'list'] }),
  });
}

export function AddImage() {
  const { t, language } = useText();
  const client = useQueryClient();
  const input = useRef<HTMLInputElement>(null);
  const [form, setForm] = useState({ name: '', from: 'url', url: '', sha256: '', format: 'qcow2' as Format });
  const [file, setFile] = useState<File | null>(null);
  const [sent, setSent] = useState(0);
  const set = (name: keyof typeof form) => (v: string) => setForm((f) => ({ ...f, [name]: v, ...(name === 'url' && { format: formatOf(v) }) }));
  const fromFile = form.from === 'file';
  const body: Image = {
    kind: 'Image', meta: { name: form.name.trim() },
    spec: { format: form.format, public: true, ...(!fromFile && { url: form.url.trim() }), ...(form.sha256.trim() && { sha256: form.sha256.trim().toLowerCase() }) },
  };
  const create = useMutation({
    mutationFn: async () => {
      if (!fromFile) return void (await ok(api.POST('/v1/images', { body })));
      if (file) await send(body, file, setSent).done;
    },
    onSuccess: () => (setForm((f) => ({ ...f, name: '', url: '', sha256: '' })), setFile(null)),
    onSettled: () => (setSent(0), client.invalidateQueries({ queryKey: ['Image', 'list'] })),
  });
  const at = (path: string) => atField(create.error, path);
  const pick = (f: File | undefined) => {
    if (!f) return;
    setFile(f);
    setForm((x) => ({ ...x, format: formatOf(f.name), name: x.name || f.name.toLowerCase().replace(/\.[^.]*$/, '').replace(/[^a-z0-9-]+/g, '-').replace(/^-+|-+$/g, '').slice(0, 63) }));
  };
  const flag = fromFile ? `--file ${quote(file?.name ?? 'FILE')}` : `--url ${quote(body.spec.url || 'URL')}`;
  return (
    <Form onSubmit={(e) => (e.preventDefault(), !create.isPending && create.mutate())}>
      <ErrorAlert error={elsewhere(create.error, shown)} />
      <SelectField id="image-from" label={t('setup.imageFrom')} value={form.from} onChange={set('from')} options={[['url', t('setup.imageUrl')], ['file', t('setup.imageFile')]]} />
      {fromFile ? (
        <div className="basalt-actions">
          <input ref={input} id="image-file" type="file" accept=".qcow2,.img,.raw,.dd" hidden aria-label={t('setup.imageChoose')} onChange={(e) => pick(e.target.files?.[0])} />
          <Button variant="secondary" onClick={() => input.current?.click()}>{t('setup.imageChoose')}</Button>
          <span>{file && `${file.name}, ${formatBytes(file.size, language)}`}</span>
        </div>
      ) : (
        <TextField id="image-url" type="url" label={t('setup.imageUrl')} error={at('spec.url')} value={form.url} onChange={set('url')} required />
      )}
      <TextField id="image-name" label={t('common.name')} help={t('cust.nameHelp')} error={at('meta.name')} value={form.name} onChange={set('name')} required />
      <SelectField id="image-format" label={t('setup.imageFormat')} error={at('spec.format')} value={form.format} onChange={set('format')} options={[['qcow2', 'qcow2'], ['raw', 'raw']]} />
      <TextField id="image-sha" label={t('setup.imageSha')} error={at('spec.sha256')} value={form.sha256} onChange={set('sha256')} />
      {fromFile && file && create.isPending && (
        <Progress id="image-sent" aria-label={t('setup.imageFile')} value={(100 * sent) / Math.max(1, file.size)} label={t('setup.imageSent', { done: formatBytes(sent, language), all: formatBytes(file.size, language) })} />
      )}
      <div><Button type="submit" isLoading={create.isPending} isDisabled={create.isPending || (fromFile && !file)}>{t('setup.imageAdd')}</Button></div>
      <Same cli={`basalt image import ${quote(body.meta.name || 'NAME')} ${flag} --public`} curl={asCurl('POST', '/v1/images', body)} />
    </Form>
  );
}
