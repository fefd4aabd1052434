// Shows in words whether one endpoint can reach another.
import { Alert, Button, Card, CardBody, CardTitle, TextInput } from '@patternfly/react-core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { trace } from '../../api/network';
import { useText } from '../../i18n';
import { asCommand, asCurl } from '../../lib/shell';
import { Field } from '../../parts/field';
import { Form } from '../../parts/form';
import { Same } from '../../parts/same';

export function Trace({ from = '', project }: { from?: string; project: string | undefined }) {
  const { t } = useText();
  const [form, setForm] = useState({ from, to: '', packet: 'tcp/443' });
  const ask = useMutation({ mutationFn: () => trace(form.from.trim(), form.to.trim(), form.packet.trim(), project) });
  const field = (name: keyof typeof form, help: string) => (
    <Field id={`trace-${name}`} label={t(`trace.${name}`)} help={help} path={name} required>
      <TextInput
        id={`trace-${name}`}
        value={form[name]}
        onChange={(_, v) => setForm((f) => ({ ...f, [name]: v }))}
        isRequired
        autoComplete="off"
        spellCheck={false}
      />
    </Field>
  );
  return (
    <Card>
      <CardTitle component="h2">{t('trace.title')}</CardTitle>
      <CardBody className="basalt-stack">
        <p className="basalt-note">{t('trace.help')}</p>
        <Form label={t('trace.title')} body={form} busy={ask.isPending} error={ask.error} onSubmit={ask.mutate}>
          <div className="basalt-pair">
            {field('from', t('trace.endHelp'))}
            {field('to', t('trace.endHelp'))}
            {field('packet', t('trace.packetHelp'))}
          </div>
          <div>
            <Button type="submit" variant="secondary" isLoading={ask.isPending} isDisabled={ask.isPending}>
              {t('trace.ask')}
            </Button>
          </div>
          <Same
            cli={asCommand([
              'network',
              'trace',
              form.from.trim() || 'FROM',
              form.to.trim() || 'TO',
              form.packet.trim() || 'tcp/443',
            ])}
            curl={asCurl(
              'GET',
              `/v1/network-trace?${new URLSearchParams({ from: form.from.trim(), to: form.to.trim(), packet: form.packet.trim(), ...(project && { project }) })}`,
            )}
          />
        </Form>
        <div aria-live="polite">
          {ask.data && (
            <Alert
              isInline
              component="h3"
              variant={ask.data.passes ? 'success' : 'warning'}
              title={t(ask.data.passes ? 'trace.passes' : 'trace.dies')}
            >
              <ol className="basalt-trace">
                {ask.data.lines.map((line, i) => (
                  <li key={i}>{line}</li>
                ))}
              </ol>
            </Alert>
          )}
        </div>
      </CardBody>
    </Card>
  );
}
