<?php

/** Loads the module's classes, for basalt.php and hooks.php. */

declare(strict_types=1);

spl_autoload_register(static function (string $class): void {
    $prefix = 'WHMCS\\Module\\Server\\Basalt\\';
    $file = __DIR__ . '/' . substr($class, strlen($prefix)) . '.php';
    if (str_starts_with($class, $prefix) && preg_match('/^[A-Za-z]+$/', substr($class, strlen($prefix))) && is_file($file)) {
        require_once $file;
    }
});
