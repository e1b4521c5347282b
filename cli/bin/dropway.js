#!/usr/bin/env node
// The client itself is compiled into ../dist; this file only starts it.
import { main } from '../dist/cli/main.js'

process.exitCode = await main(process)
