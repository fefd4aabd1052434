<?php

declare(strict_types=1);

namespace WHMCS\Module\Server\Basalt;

/** Data stored with a WHMCS service, in its service properties. */
final class Properties
{
    public const QUOTA = 'Basalt quota';

    /** @param array<string,mixed> $params */
    public static function get(array $params, string $name): string
    {
        $model = $params['model'] ?? null;
        if (!is_object($model) || !isset($model->serviceProperties)) {
            return '';
        }
        return trim((string) $model->serviceProperties->get($name));
    }

    /**
     * @param array<string,mixed> $params
     * @param array<string,string> $values
     */
    public static function save(array $params, array $values): void
    {
        $model = $params['model'] ?? null;
        if (is_object($model) && isset($model->serviceProperties)) {
            $model->serviceProperties->save($values);
        }
    }
}
