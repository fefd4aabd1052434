// Errors of the API: in an alert, or at the field that they name.
import { Alert, AlertActionCloseButton, Button } from '@patternfly/react-core';
import { asApiError } from '../api/client';
import { withHint } from '../api/fields';
import { useText } from '../i18n';
import { useTell } from './told';

interface Props {
  error: unknown;
  onRetry?: () => void;
  onClose?: () => void;
}

export function ErrorAlert({ error, onRetry, onClose }: Props) {
  const { t } = useText();
  const tell = useTell();
  if (!error) return null;
  const e = asApiError(error);
  const away = e.code === 'unreachable';
  return (
    <Alert
      variant="danger"
      isInline
      isLiveRegion
      component="p"
      title={
        away
          ? t('error.unreachable')
          : (e.reason?.code ? tell({ text: e.message, cause: e.reason }) : e.message) || t('error.title')
      }
      actionLinks={
        onRetry && (
          <Button variant="link" isInline onClick={onRetry}>
            {t('error.retry')}
          </Button>
        )
      }
      actionClose={onClose && <AlertActionCloseButton aria-label={t('error.close')} onClose={onClose} />}
    >
      {away ? t('error.unreachableHint') : e.hint}
      {e.fields.slice(1).map((f) => (
        <p key={f.field}>{withHint(f.detail, f.hint)}</p>
      ))}
    </Alert>
  );
}
