// What the API said: in an alert, or at the field that it names.
import { Alert, AlertActionCloseButton, Button } from '@patternfly/react-core';
import { asApiError } from '../api/client';
import { useText } from '../i18n';

interface Props {
  error: unknown;
  onRetry?: () => void;
  onClose?: () => void;
}

export function ErrorAlert({ error, onRetry, onClose }: Props) {
  const { t } = useText();
  if (!error) return null;
  const e = asApiError(error);
  const away = e.code === 'unreachable';
  return (
    <Alert
      variant="danger"
      isInline
      isLiveRegion
      title={away ? t('error.unreachable') : e.message || t('error.title')}
      actionLinks={onRetry && <Button variant="link" isInline onClick={onRetry}>{t('error.retry')}</Button>}
      actionClose={onClose && <AlertActionCloseButton aria-label={t('error.close')} onClose={onClose} />}
    >
      {away ? t('error.unreachableHint') : e.hint}
    </Alert>
  );
}

/** atField is what an error says of a field, or of one below it. */
export function atField(error: unknown, path: string): string | undefined {
  if (!error) return undefined;
  const { field, message, hint } = asApiError(error);
  if (!field || (field !== path && !field.startsWith(`${path}.`) && !field.startsWith(`${path}[`))) return undefined;
  return hint ? `${message}: ${hint}` : message;
}

/** elsewhere is the error, unless one of the form's fields shows it. */
export const elsewhere = (error: unknown, paths: readonly string[]): unknown => (error && paths.some((p) => atField(error, p)) ? null : error);
