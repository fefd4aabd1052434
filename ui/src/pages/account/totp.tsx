// One-time codes: set up with an authenticator, and disabled with the password and a code.
import { Button, Card, CardBody, CardTitle, ClipboardCopy, Label, TextInput } from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok } from '../../api/client';
import { sessionKey, type Session } from '../../api/session';
import { useText } from '../../i18n';
import { ErrorAlert } from '../../parts/error';
import { Field } from '../../parts/field';
import { Form } from '../../parts/form';
import { FormDialog } from '../../parts/form-dialog';
import { QrCode } from '../../parts/qr-code';
import { RecoveryCodes } from './recovery-codes';

function SetUp({ secret, uri, onDone }: { secret: string; uri: string; onDone: (codes: string[]) => void }) {
  const { t } = useText();
  const [code, setCode] = useState('');
  const confirm = useMutation({
    mutationFn: () => ok(api.POST('/v1/totp/confirm', { body: { code: code.trim() } })),
    onSuccess: ({ codes }) => onDone(codes),
  });
  return (
    <Form
      label={t('acc.totpBegin')}
      body={{ code }}
      busy={confirm.isPending}
      error={confirm.error}
      onSubmit={confirm.mutate}
    >
      <p>{t('acc.totpScan')}</p>
      <QrCode text={uri} label={t('acc.totpQr')} />
      <ClipboardCopy
        isReadOnly
        hoverTip={t('common.copy')}
        clickTip={t('common.copied')}
        textAriaLabel={t('acc.secret')}
      >
        {secret}
      </ClipboardCopy>
      <Field id="acc-code" label={t('acc.code')} path="code" required>
        <TextInput
          id="acc-code"
          inputMode="numeric"
          autoComplete="one-time-code"
          isRequired
          value={code}
          onChange={(_, v) => setCode(v)}
        />
      </Field>
      <div>
        <Button type="submit" isLoading={confirm.isPending} isDisabled={confirm.isPending}>
          {t('acc.confirm')}
        </Button>
      </div>
    </Form>
  );
}

function TurnOff({ email, onOff, onClose }: { email: string; onOff: () => void; onClose: () => void }) {
  const { t } = useText();
  const [password, setPassword] = useState('');
  const [code, setCode] = useState('');
  const off = useMutation({
    mutationFn: () => ok(api.POST('/v1/totp/disable', { body: { password, code: code.trim() } })),
    onSuccess: () => (onOff(), onClose()),
  });
  return (
    <FormDialog
      title={t('acc.totpOff')}
      help={t('acc.totpOffHelp')}
      action={t('acc.off')}
      busy={off.isPending}
      error={off.error}
      body={{ password, code }}
      onSubmit={off.mutate}
      onClose={onClose}
    >
      <input type="text" hidden readOnly autoComplete="username" value={email} />
      <Field id="acc-off" label={t('acc.old')} path="password" required>
        <TextInput
          id="acc-off"
          type="password"
          autoComplete="current-password"
          isRequired
          value={password}
          onChange={(_, v) => setPassword(v)}
        />
      </Field>
      <Field id="acc-off-code" label={t('signIn.code')} path="code" help={t('signIn.codeHelp')} required>
        <TextInput
          id="acc-off-code"
          autoComplete="one-time-code"
          isRequired
          value={code}
          onChange={(_, v) => setCode(v)}
        />
      </Field>
    </FormDialog>
  );
}

export function OneTimeCodes({ email, on, required = false }: { email: string; on: boolean; required?: boolean }) {
  const { t } = useText();
  const client = useQueryClient();
  const turned = (totp: boolean) =>
    client.setQueryData(sessionKey, (s: Session | null | undefined) => s && { ...s, totp });
  const [codes, setCodes] = useState<string[] | null>(null);
  const [turningOff, setTurningOff] = useState(false);
  const begin = useMutation({ mutationFn: () => ok(api.POST('/v1/totp')) });
  return (
    <Card>
      <CardTitle component="h2">{t('acc.totp')}</CardTitle>
      <CardBody className="basalt-stack">
        <p className="basalt-note">{t('acc.totpHelp')}</p>
        <ErrorAlert error={begin.error} />
        {codes && <RecoveryCodes codes={codes} onClose={() => setCodes(null)} />}
        {!codes && begin.data && (
          <SetUp
            secret={begin.data.secret}
            uri={begin.data.uri}
            onDone={(c) => (setCodes(c), begin.reset(), turned(true))}
          />
        )}
        {!begin.data && !codes && (
          <div className="basalt-actions">
            <Label color={on ? 'green' : 'grey'}>{t(on ? 'acc.totpIsOn' : 'acc.totpIsOff')}</Label>
            {on ? (
              !required && (
                <Button variant="link" isDanger onClick={() => setTurningOff(true)}>
                  {t('acc.totpOff')}
                </Button>
              )
            ) : (
              <Button variant="secondary" isLoading={begin.isPending} onClick={() => begin.mutate()}>
                {t('acc.totpBegin')}
              </Button>
            )}
          </div>
        )}
      </CardBody>
      {turningOff && <TurnOff email={email} onOff={() => turned(false)} onClose={() => setTurningOff(false)} />}
    </Card>
  );
}
