// SPDX-License-Identifier: MIT
// Every family of models.
#pragma once
#include <dovetail/models/bert.hpp>
#include <dovetail/models/falcon.hpp>
#include <dovetail/models/gemma2.hpp>
#include <dovetail/models/gpt2.hpp>
#include <dovetail/models/llama.hpp>
#include <dovetail/models/mistral.hpp>
#include <dovetail/models/olmo2.hpp>
#include <dovetail/models/phi3.hpp>
#include <dovetail/models/qwen.hpp>
